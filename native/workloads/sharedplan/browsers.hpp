// Emulated browsers: each asks for an interaction, waits for its answer, thinks, and asks again.
// One thread is all of them, outside of the operators' cores where there are others. Interactions
// are drawn by their shares, one independent of the other; TPC-W's browsers walk over pages so that
// the same shares come out.
#pragma once

#include <condition_variable>
#include <queue>

#include "engine.hpp"

namespace atl::sharedplan {

struct Asking {
  std::size_t browsers = 100;
  std::chrono::milliseconds think{0};  // on average; exponentially distributed
  std::uint64_t seed = 1;
};

struct Answer {
  Clock::time_point at;
  float seconds;  // since it was asked
};

// What came between two times.
struct Answers {
  std::vector<Answer> all;
  std::uint64_t cycles = 0;
  std::vector<std::shared_ptr<Query>> samples;  // of each interaction one a second, with its rows
};

class Browsers {
 public:
  // They run on these CPUs; empty: wherever the process may. Throws as `start_thread`.
  Browsers(Engine& engine, const Asking& asking, const std::vector<int>& cpus);
  ~Browsers();

  // The answers since the last call, as far as the engine was watched.
  Answers take();

 private:
  void ask_all();
  std::vector<std::shared_ptr<Query>> waiting();  // until some wait; empty: it ends
  void answered(const std::shared_ptr<Query>& query);

  Engine& engine_;
  Asking asking_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ending_ = false;
  using Due = std::pair<Clock::time_point, std::size_t>;  // when a browser asks
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
  std::size_t asked_ = 0;
  std::size_t left_ = 0;  // in cycles
  Answers answers_;
  std::vector<Clock::time_point> sampled_;  // by interaction
  std::thread thread_;
};

}  // namespace atl::sharedplan
