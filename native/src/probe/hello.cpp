#include "hello.hpp"

#include <cstring>
#include <string>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "clock.hpp"
#include "isa.hpp"
#include "memory.hpp"

namespace atl::probe {
namespace {

// The hypervisor's signature, for example 'KVMKVMKVM'; empty without one, or not on x86.
std::string hypervisor() {
#if defined(__x86_64__)
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  constexpr unsigned kPresent = 1U << 31;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & kPresent) == 0) return "";
  // Do not use __get_cpuid, which rejects these leaves as too high.
  __cpuid(0x40000000, a, b, c, d);
  const unsigned parts[] = {b, c, d};
  char text[sizeof(parts) + 1] = {};
  std::memcpy(text, parts, sizeof(parts));
  for (const char* at = text; *at != '\0'; ++at) {
    if (*at < ' ' || *at > '~') return "";
  }
  return text;
#else
  return "";
#endif
}

}  // namespace

Json hello(const Request&) {
  return {{"version", 1},
          {"clock", clock_name()},
          {"tick_ns", tick_ns()},
          {"isa", name_of(best_isa())},
          {"page_bytes", page_bytes()},
          {"huge_page_bytes", huge_page_bytes()},
          {"hypervisor", hypervisor()}};
}

}  // namespace atl::probe
