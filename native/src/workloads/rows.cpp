#include "rows.hpp"

#include <sys/mman.h>

#include <new>

namespace atl::workloads {

Mapping::Mapping(std::size_t bytes, Pages pages) : begin_(nullptr), bytes_(bytes) {
  if (bytes == 0) return;
  void* const found = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (found == MAP_FAILED) throw std::bad_alloc();
  begin_ = found;
  // A kernel without huge pages refuses, which changes nothing.
  if (pages == Pages::kHuge) madvise(begin_, bytes, MADV_HUGEPAGE);
}

Mapping::~Mapping() {
  if (begin_ != nullptr) munmap(begin_, bytes_);
}

}  // namespace atl::workloads
