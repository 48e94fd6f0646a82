// Memory for small objects that one worker makes and another frees: the jobs of spawn and scope,
// and the frames of coroutines.
//
// A worker keeps up to two batches of freed blocks of each size and reuses them, last in, first
// out: two loads and two stores. Blocks go to the worker that frees them, which gives full batches
// to the depot of the process; a worker without blocks takes a batch from there, or cuts one from
// new memory. So a worker that makes tasks for others to end visits the depot once a batch
// (magazines: Bonwick and Adams, USENIX 2001). The memory stays with the process, as that of stacks
// does. Under AddressSanitizer every block comes from malloc, so that it detects uses after free.
//
// An object has cache lines of its own; one that needs to be aligned to more has other memory. A
// frame of a coroutine, of which there may be millions, takes only its bytes, rounded up to 16.
// Nobody tells us its alignment. But the blocks of a batch are as far apart as they are large, and
// the first is at a line: so a block is aligned to every power of 2, up to a line, that divides its
// size.
#pragma once

#include <array>
#include <cstddef>
#include <new>

#include "atoll/build.h"
#include "atoll/runtime/export.hpp"

namespace atl::detail {

class JobMemory {
 public:
  static constexpr std::size_t kLine = 64;
  static constexpr std::size_t kStep = 16;      // sizes are multiples of it
  static constexpr std::size_t kLargest = 512;  // larger blocks come from malloc
  static constexpr int kBatch = 64;

  JobMemory() = default;
  JobMemory(const JobMemory&) = delete;
  JobMemory& operator=(const JobMemory&) = delete;
  ATOLL_EXPORT ~JobMemory();

  // `bytes`: more than kStep.
  void* take(std::size_t bytes) {
    const std::size_t at = (bytes - 1) / kStep;
    if (!kPlain || at >= kClasses) return allocate(bytes);
    Shelf& shelf = shelves_[at];
    if (shelf.first == nullptr) [[unlikely]]
      refill(at);
    Block* const block = shelf.first;
    shelf.first = block->next;
    --shelf.count;
    return block;
  }

  void give(void* memory, std::size_t bytes) noexcept {
    const std::size_t at = (bytes - 1) / kStep;
    if (!kPlain || at >= kClasses) return free(memory, bytes);
    Shelf& shelf = shelves_[at];
    if (shelf.count == kBatch) [[unlikely]]
      put_aside(at);
    shelf.first = ::new (memory) Block(shelf.first);
    ++shelf.count;
  }

  // The same for a T of any alignment.
  template <class T>
  void* take_for() {
    if constexpr (kOwnMemory<T>) return allocate_for<T>();
    return take(kLines<T>);
  }
  template <class T>
  void give_for(void* memory) noexcept {
    if constexpr (kOwnMemory<T>) return free_for<T>(memory);
    give(memory, kLines<T>);
  }

  // For threads that are not workers.
  ATOLL_EXPORT static void* allocate(std::size_t bytes);
  ATOLL_EXPORT static void free(void* memory, std::size_t bytes) noexcept;

  template <class T>
  static constexpr bool kOwnMemory = alignof(T) > kLine;
  template <class T>
  static constexpr std::size_t kLines = (sizeof(T) + kLine - 1) / kLine * kLine;
  template <class T>
  static void* allocate_for() {
    return ::operator new(sizeof(T), std::align_val_t{alignof(T)});
  }
  template <class T>
  static void free_for(void* memory) noexcept {
    ::operator delete(memory, std::align_val_t{alignof(T)});  // clang before 19 has none by size
  }

 private:
#ifdef ATL_RT_ASAN
  static constexpr bool kPlain = false;
#else
  static constexpr bool kPlain = true;
#endif
  static constexpr std::size_t kClasses = kLargest / kStep;
  struct Block {
    explicit Block(Block* after) : next(after) {}
    Block* next;
    Block* next_batch;  // of the first block of a batch that is in the depot
    int count;          // the same
  };
  static_assert(sizeof(Block) <= 2 * kStep, "every block has room for it");
  struct Depot;
  struct Shelf {
    Block* first = nullptr;
    int count = 0;
    Block* aside = nullptr;  // a full batch
  };
  ATOLL_EXPORT void refill(std::size_t at);
  ATOLL_EXPORT void put_aside(std::size_t at) noexcept;

  std::array<Shelf, kClasses> shelves_;
};

}  // namespace atl::detail
