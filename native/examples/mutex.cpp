// A mutex and a condition variable for tasks: a queue between producers and a consumer.
#include <atoll/runtime.hpp>
#include <cstdio>
#include <deque>
#include <mutex>

class Queue {
 public:
  void push(int value) {
    {
      const std::lock_guard lock(mutex_);
      values_.push_back(value);
    }
    filled_.notify_one();
  }

  int pop() {
    std::unique_lock lock(mutex_);
    filled_.wait(lock, [&] { return !values_.empty(); });
    const int value = values_.front();
    values_.pop_front();
    return value;
  }

 private:
  atl::Mutex mutex_;
  atl::ConditionVariable filled_;
  std::deque<int> values_;
};

int main() {
  atl::Runtime runtime;
  Queue queue;
  const int sum = runtime.run([&] {
    auto consumer = atl::spawn([&] {
      int total = 0;
      for (int count = 0; count < 300; ++count) total += queue.pop();
      return total;
    });
    atl::Scope producers;
    for (int producer = 0; producer < 3; ++producer) {
      producers.fork([&] {
        for (int value = 1; value <= 100; ++value) queue.push(value);
      });
    }
    producers.join();
    return consumer.join();
  });
  std::printf("sum %d\n", sum);
  return sum == 3 * 5050 ? 0 : 1;
}
