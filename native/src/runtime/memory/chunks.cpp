#include "chunks.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <utility>

namespace atl::runtime {

namespace {

// Large enough that slabs are a small part of the 65,530 mappings a process may have (each is
// three), small enough to cost nothing if a node's resource is hardly used.
constexpr std::size_t kSlabBytes = std::size_t{2} << 20;

bool is_small(std::size_t bytes, std::size_t alignment) {
  return bytes <= kLargestPooled && alignment <= page_bytes();
}

}  // namespace

Chunks::Chunks(PagePolicy& policy, Layout layout) : policy_(policy), layout_(std::move(layout)) {
  slabs_.push_back(placed(kSlabBytes));
}

std::unique_ptr<Block> Chunks::placed(std::size_t bytes) const {
  return std::make_unique<Block>(policy_, bytes, layout_, Pages::normal);
}

void* Chunks::small(std::size_t bytes, std::size_t alignment) {
  const std::scoped_lock lock(mutex_);
  // Made here and never removed, so that freeing needs no memory: it must not throw.
  void*& freed = freed_[{bytes, alignment}];
  if (freed != nullptr) {
    void* const at = freed;
    std::memcpy(&freed, at, sizeof(void*));
    return at;
  }
  // Room for the address in a freed piece.
  bytes = std::max(bytes, sizeof(void*));
  std::size_t begin = (cut_bytes_ + alignment - 1) / alignment * alignment;
  if (begin + bytes > kSlabBytes) {
    slabs_.push_back(placed(kSlabBytes));
    begin = 0;
  }
  cut_bytes_ = begin + bytes;
  return slabs_.back()->data() + begin;
}

void* Chunks::large(std::size_t bytes, std::size_t alignment) {
  // A pool's chunk is aligned by the size of its blocks, which may be more than a page.
  const std::size_t slack = alignment > page_bytes() ? alignment : 0;
  if (bytes > std::numeric_limits<std::size_t>::max() - slack) throw std::bad_alloc();
  std::unique_ptr<Block> block = placed(bytes + slack);  // system calls: not under the lock
  const auto over = reinterpret_cast<std::uintptr_t>(block->data()) % alignment;
  void* const at = block->data() + (over == 0 ? 0 : alignment - over);
  const std::scoped_lock lock(mutex_);
  large_.emplace(at, std::move(block));
  return at;
}

void* Chunks::do_allocate(std::size_t bytes, std::size_t alignment) {
  try {
    return is_small(bytes, alignment) ? small(bytes, alignment)
                                      : large(std::max<std::size_t>(bytes, 1), alignment);
  } catch (const RuntimeFault&) {
    throw std::bad_alloc();  // what containers and their users expect
  }
}

void Chunks::do_deallocate(void* at, std::size_t bytes, std::size_t alignment) {
  std::unique_ptr<Block> block;  // unmapped after the lock
  const std::scoped_lock lock(mutex_);
  if (is_small(bytes, alignment)) {
    void*& freed = freed_.find({bytes, alignment})->second;
    std::memcpy(at, &freed, sizeof(void*));
    freed = at;
    return;
  }
  const auto found = large_.find(at);
  block = std::move(found->second);
  large_.erase(found);
}

bool Chunks::do_is_equal(const memory_resource& other) const noexcept { return this == &other; }

}  // namespace atl::runtime
