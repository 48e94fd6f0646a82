#include "hello.hpp"

#include "clock.hpp"
#include "memory.hpp"

namespace atl::probe {

const char* widest_isa() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return "avx512";
  if (__builtin_cpu_supports("avx2")) return "avx2";
  return "scalar";
#elif defined(__aarch64__)
  return "neon";
#else
  return "scalar";
#endif
}

Json hello(const Request&) {
  return {
      {"version", 1},        {"clock", clock_name()},      {"tick_ns", tick_ns()},
      {"isa", widest_isa()}, {"page_bytes", page_bytes()}, {"huge_page_bytes", huge_page_bytes()}};
}

}  // namespace atl::probe
