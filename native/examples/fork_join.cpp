// fork and join: offer a call to other workers, do something else, get the result.
#include <atoll/runtime.hpp>
#include <cstdio>

long fib(int n) {
  if (n < 2) return n;
  auto left = atl::fork([n] { return fib(n - 1); });
  const long right = fib(n - 2);
  return left.join() + right;
}

int main() {
  atl::Runtime runtime;
  const long value = runtime.run([] { return fib(25); });
  std::printf("fib(25) = %ld\n", value);
  return value == 75025 ? 0 : 1;
}
