#include "atoll/runtime/detail/job_memory.hpp"

#include <new>

namespace atl::detail {

JobMemory::~JobMemory() {
  for (std::size_t at = 0; at < kClasses; ++at) {
    Block* block = shelves_[at].first;
    while (block != nullptr) {
      Block* const next = block->next;
      free(block, (at + 1) * kStep);
      block = next;
    }
  }
}

// All blocks of a class have its full size: the thread that frees one knows only its object's.
void* JobMemory::allocate(std::size_t bytes) {
  return ::operator new((bytes + kStep - 1) / kStep * kStep, std::align_val_t{kStep});
}

void JobMemory::free(void* memory, std::size_t bytes) noexcept {
  ::operator delete(memory, (bytes + kStep - 1) / kStep * kStep, std::align_val_t{kStep});
}

}  // namespace atl::detail
