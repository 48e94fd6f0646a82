// Guards: ranges between stacks where every access faults. A guard is 64 KiB, because code that is
// not compiled with -fstack-clash-protection, such as that of libraries, may skip a single page
// with a large local variable. It takes no memory.
//
// MADV_GUARD_INSTALL (Linux 6.13) marks pages inside a mapping and costs nothing else. Before it,
// mprotect splits a mapping in three, and a process may have at most vm.max_map_count of them:
// about 32,700 guarded stacks by default. They are counted, so that the limit causes a message here
// and not a failure of malloc elsewhere.
#pragma once

#include <cstddef>

#include "page_size.hpp"

namespace atl::runtime {

struct GuardSupport {
  bool install = false;       // the kernel has MADV_GUARD_INSTALL
  std::size_t map_limit = 0;  // mappings that guards may add to the process by mprotect
};

// The support of this kernel now; existing mappings of the process reduce the limit.
GuardSupport guard_support();

// 64 KiB, or a page where pages are larger.
std::size_t guard_bytes() noexcept;

class Guards {
 public:
  explicit Guards(GuardSupport support) : support_(support) {}
  // Throws RuntimeFault at the kernel's limit on mappings; the message names the slab mode.
  void install(std::byte* low, std::size_t bytes);
  // `guards` of them have been unmapped.
  void release(std::size_t guards) noexcept;

 private:
  GuardSupport support_;
};

}  // namespace atl::runtime
