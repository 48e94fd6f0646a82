// Static lifetime: a runtime that is made before main and destroyed after it, used until the very
// end by another static object.
#include <cstdio>
#include <cstdlib>

#include "atoll/runtime/fork.hpp"
#include "atoll/runtime/runtime.hpp"
#include "runtime_parts.hpp"

namespace {

long fib(int n) {
  if (n < 2) return n;
  auto left = atl::fork([n] { return fib(n - 1); });
  const long right = fib(n - 2);
  return left.join() + right;
}

atl::Runtime& runtime() {
  static atl::Runtime the_runtime(atl::test::with_workers(3));
  return the_runtime;
}

struct UsedAtTheEnd {
  UsedAtTheEnd() { runtime(); }  // made first, so destroyed last
  ~UsedAtTheEnd() {
    if (runtime().run([] { return fib(12); }) != 144) std::_Exit(1);
    std::puts("destroyed in order");
  }
};

UsedAtTheEnd used_at_the_end;

}  // namespace

int main() {
  return runtime().run([] { return fib(10); }) == 55 ? 0 : 1;
}
