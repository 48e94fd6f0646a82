// Workers lent to an engine that has its own queue: the runtime seats and moves the threads, and
// the engine decides what they do.
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

// One shared queue, as in many engines.
class Engine {
 public:
  void work() {  // runs on each worker until the engine ends
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

// Uses the spread that the engine wants.
class Wanted : public atl::Approach {
 public:
  std::string name() const override { return "wanted"; }
  std::atomic<int> spread{1};

 protected:
  atl::Decision decide(const atl::Sample&) override { return {spread, "the engine's choice"}; }
};

int main() {
  Engine engine;
  const auto wanted = std::make_shared<Wanted>();
  atl::RuntimeOptions options;
  options.workers = 4;
  // Four chiplets of four cores, on any machine, so that there is a choice.
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
  runtime.look();  // moves the workers now, not at the end of an interval
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
  runtime.set_pin(false);  // from now on workers may run on all CPUs of the process

  engine.end();  // the runtime waits until every worker has returned from `work`
  std::printf("%d tasks\n", done.load());
  return compact && wide && done == 100 ? 0 : 1;
}
