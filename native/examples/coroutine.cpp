// Coroutines of any type can await tasks, and can continue as a task.
#include <atoll/runtime.hpp>
#include <coroutine>
#include <cstdio>
#include <exception>

// The minimum that C++20 requires of a coroutine type; use your own.
struct Job {
  struct promise_type {
    Job get_return_object() { return {}; }
    std::suspend_never initial_suspend() { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
};

Job answer(atl::Runtime& runtime, int& result, atl::Event& done) {
  co_await atl::schedule(runtime);  // from here on it is a task of the runtime
  const int left = co_await atl::spawn([] { return 6; });
  const int right = co_await runtime.spawn([] { return 7; });
  result = left * right;
  done.set();
}

int main() {
  atl::Runtime runtime;
  int result = 0;
  atl::Event done;
  answer(runtime, result, done);
  done.wait();
  std::printf("%d\n", result);
  return result == 42 ? 0 : 1;
}
