#include "affinity.hpp"

#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstddef>

namespace atl::runtime {

int this_thread() { return static_cast<int>(syscall(SYS_gettid)); }

bool bind_thread(int thread, std::span<const int> cpus) {
  if (cpus.empty()) return false;
  const auto most = static_cast<std::size_t>(*std::max_element(cpus.begin(), cpus.end())) + 1;
  cpu_set_t* set = CPU_ALLOC(most);
  if (set == nullptr) return false;
  const std::size_t bytes = CPU_ALLOC_SIZE(most);
  CPU_ZERO_S(bytes, set);
  for (const int cpu : cpus) CPU_SET_S(static_cast<std::size_t>(cpu), bytes, set);
  const bool bound = sched_setaffinity(thread, bytes, set) == 0;
  CPU_FREE(set);
  return bound;
}

std::vector<int> cpus_of_thread(int thread) {
  // The kernel refuses a set that is smaller than its own.
  for (std::size_t most = 1024; most <= (std::size_t{1} << 20); most *= 2) {
    const std::size_t bytes = CPU_ALLOC_SIZE(most);
    std::vector<cpu_set_t> room((bytes + sizeof(cpu_set_t) - 1) / sizeof(cpu_set_t));
    cpu_set_t* const set = room.data();
    CPU_ZERO_S(bytes, set);
    if (sched_getaffinity(thread, bytes, set) != 0) continue;
    std::vector<int> cpus;
    for (std::size_t cpu = 0; cpu < most; ++cpu) {
      if (CPU_ISSET_S(cpu, bytes, set)) cpus.push_back(static_cast<int>(cpu));
    }
    return cpus;
  }
  return {};
}

void prefer_node(int node) {
  constexpr std::size_t kBits = sizeof(unsigned long) * CHAR_BIT;
  std::vector<unsigned long> mask(static_cast<std::size_t>(node) / kBits + 1);
  mask.back() = 1UL << (static_cast<std::size_t>(node) % kBits);
  // The kernel reads one bit less than the given number.
  syscall(SYS_set_mempolicy, MPOL_PREFERRED, mask.data(), mask.size() * kBits + 1);
}

}  // namespace atl::runtime
