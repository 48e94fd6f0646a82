// How many threads of the process run at each moment of a run (ARCAS, Fig. 11).
//
// A thread of its own looks at the state of all others every 5 ms: `R` in /proc/self/task/*/stat,
// which a thread has while it runs or waits for a CPU. The time on CPUs would be exact, but on a
// machine with others at work it tells of them, not of the scheduler. A look takes 3 us a thread.
#pragma once

#include <memory>
#include <vector>

namespace atl::kernels {

class Concurrency {
 public:
  static constexpr double kEverySeconds = 0.005;

  // Throws std::system_error if the thread cannot be had.
  Concurrency();
  ~Concurrency();
  Concurrency(const Concurrency&) = delete;
  Concurrency& operator=(const Concurrency&) = delete;

  // Whether it looks. At first it does not.
  void watch(bool on);
  // What it has seen, while it does not look.
  [[nodiscard]] const std::vector<int>& running() const;
  // The threads that there are now, without its own.
  [[nodiscard]] static int threads();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace atl::kernels
