// Workers lent to an engine that has a queue of its own: the runtime seats and moves the threads,
// the engine says what they do.
#include <atoll/runtime.hpp>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <functional>
#include <latch>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <utility>

// One queue for all, as many engines have.
class Engine {
 public:
  void work() {  // by each worker: until the engine ends
    for (std::unique_lock lock(mutex_);;) {
      changed_.wait(lock, [&] { return over_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      const std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
      lock.lock();
    }
  }
  void submit(std::function<void()> task) {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    changed_.notify_one();
  }
  bool busy() {
    const std::lock_guard lock(mutex_);
    return !tasks_.empty();
  }
  void end() {
    const std::lock_guard lock(mutex_);
    over_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  bool over_ = false;
};

// As wide as the engine wants to be.
class Wanted : public atl::Approach {
 public:
  std::string name() const override { return "wanted"; }
  std::atomic<int> spread{1};

 protected:
  atl::Decision decide(const atl::Sample&) override { return {spread, "the engine's word"}; }
};

int main() {
  Engine engine;
  const auto wanted = std::make_shared<Wanted>();
  atl::RuntimeOptions options;
  options.workers = 4;
  // Four chiplets of four cores, whatever this machine has, so that there is something to choose.
  options.places = atl::synthetic_places("chiplet:4 core:4", atl::places_here().cores.front().cpus);
  options.own_approach = wanted;
  options.lent = atl::LentWorkers{
      .work = [&](int) { engine.work(); },  // on the worker's own thread and stack
      .busy = [&] { return engine.busy(); },
      .placed = [](std::span<const atl::Seat> seats) { std::printf("%zu seats\n", seats.size()); }};
  atl::Runtime runtime(options);

  const auto chiplets = [&] {
    std::set<int> found;
    for (const int core : runtime.cores()) {
      found.insert(runtime.places().cores[static_cast<std::size_t>(core)].chiplet);
    }
    return found.size();
  };
  const bool compact = chiplets() == 1;

  wanted->spread = 4;
  runtime.look();  // moves the workers before it returns, not at the end of an interval
  const bool wide = chiplets() == 4;

  std::atomic<int> done = 0;
  std::latch all(100);
  for (int task = 0; task < 100; ++task) {
    engine.submit([&] {
      ++done;
      all.count_down();
    });
  }
  all.wait();
  runtime.set_pin(false);  // from now on they may run wherever the process may

  engine.end();  // the runtime waits until every worker has returned from `work`
  std::printf("%d tasks\n", done.load());
  return compact && wide && done == 100 ? 0 : 1;
}
