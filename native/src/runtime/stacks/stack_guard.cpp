#include "stack_guard.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>

#include "atoll/runtime/places.hpp"

namespace atl::runtime {

namespace {

constexpr int kGuardInstall = 102;  // MADV_GUARD_INSTALL; Debian 12's headers do not have it

// A guard inside a mapping adds two more: itself and the rest after it.
constexpr std::size_t kMappingsPerGuard = 2;

// Of all pools: the limit is the process's.
std::atomic<std::size_t> added_mappings{0};

bool kernel_installs_guards() {
  void* page =
      mmap(nullptr, page_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return false;
  // The second half: an emulator (qemu-user) ignores unknown advice. access() reads a path from the
  // page and reports a fault.
  const bool works = madvise(page, page_bytes(), kGuardInstall) == 0 &&
                     access(static_cast<const char*>(page), F_OK) != 0 && errno == EFAULT;
  munmap(page, page_bytes());
  return works;
}

std::size_t mappings_limit() {
  std::size_t limit = 65530;  // the kernel's default, if /proc is missing
  std::ifstream("/proc/sys/vm/max_map_count") >> limit;
  return limit;
}

std::size_t mappings_now() {
  std::ifstream maps("/proc/self/maps");
  return static_cast<std::size_t>(std::count(std::istreambuf_iterator<char>(maps), {}, '\n'));
}

[[noreturn]] void limit_reached(std::size_t limit) {
  throw RuntimeFault("no more guarded stacks: their guards may add " + std::to_string(limit) +
                     " mappings to this process (vm.max_map_count); raise it by sysctl, use Linux "
                     "6.13 or later, or choose StackOptions::Kind::slab");
}

}  // namespace

std::size_t guard_bytes() noexcept { return std::max(page_bytes(), std::size_t{64} << 10); }

GuardSupport guard_support() {
  GuardSupport support;
  support.install = kernel_installs_guards();
  if (support.install) return support;
  // The rest of the program needs some: thread stacks, malloc's arenas, libraries still to load.
  constexpr std::size_t kReserve = 2048;
  const std::size_t others = mappings_now() - std::min(mappings_now(), added_mappings.load());
  const std::size_t limit = mappings_limit();
  support.map_limit = limit - std::min(limit, others + kReserve);
  return support;
}

void Guards::install(std::byte* low, std::size_t bytes) {
  if (support_.install) {
    if (madvise(low, bytes, kGuardInstall) == 0) return;
    throw RuntimeFault("a guard of a stack: madvise: " + std::generic_category().message(errno));
  }
  // Relaxed: only a count; several pools may overshoot by one each, never undershoot.
  const std::size_t before = added_mappings.fetch_add(kMappingsPerGuard, std::memory_order_relaxed);
  if (before + kMappingsPerGuard > support_.map_limit || mprotect(low, bytes, PROT_NONE) != 0) {
    added_mappings.fetch_sub(kMappingsPerGuard, std::memory_order_relaxed);
    limit_reached(support_.map_limit);
  }
}

void Guards::release(std::size_t guards) noexcept {
  if (!support_.install) {
    added_mappings.fetch_sub(guards * kMappingsPerGuard, std::memory_order_relaxed);
  }
}

}  // namespace atl::runtime
