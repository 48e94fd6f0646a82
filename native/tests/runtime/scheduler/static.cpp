// Static lifetime: a runtime that is made before main and destroyed after it, used until the very
// end by another static object.
#include <cstdio>
#include <cstdlib>

#include "atoll/runtime/runtime.hpp"
#include "runtime/parts.hpp"

namespace {

using atl::test::fib;

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
