// libfork: tasks are coroutines, so it has kernels of its own. Its lazy pool sleeps when it has no
// work, as the others do.
#pragma once

#include <array>
#include <cstddef>
#include <libfork.hpp>

#include "backend.hpp"

namespace atl::perf {

class Backend {
 public:
  static constexpr const char* kName = "libfork";
  static constexpr Weight kWeight = Weight::kTask;

  explicit Backend(Setup setup) : pool_(static_cast<std::size_t>(setup.threads)) {}

  long fib(int n) { return lf::sync_wait(pool_, kFib, n); }
  long skynet(long first, long leaves) { return lf::sync_wait(pool_, kSkynet, first, leaves); }

 private:
  static constexpr auto kFib = [](auto fib, int n) -> lf::task<long> {
    if (n < 2) co_return n;
    long first = 0;
    long second = 0;
    co_await lf::fork(&first, fib)(n - 1);
    co_await lf::call(&second, fib)(n - 2);
    co_await lf::join;
    co_return first + second;
  };
  static constexpr auto kSkynet = [](auto skynet, long first, long leaves) -> lf::task<long> {
    if (leaves == 1) co_return first;
    std::array<long, 10> sums{};
    const long part = leaves / 10;
    for (long i = 0; i < 10; ++i) {
      co_await lf::fork(&sums[static_cast<std::size_t>(i)], skynet)(first + i * part, part);
    }
    co_await lf::join;
    long sum = 0;
    for (const long one : sums) sum += one;
    co_return sum;
  };

  lf::lazy_pool pool_;
};

}  // namespace atl::perf
