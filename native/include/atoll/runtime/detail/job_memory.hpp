// Memory for small objects that one worker makes and another frees: the jobs of spawn and scope.
//
// A worker keeps a few freed blocks of each size and reuses them, last in, first out: two loads and
// two stores instead of a call to malloc. Blocks go to the cache of the worker that frees them; a
// full cache returns blocks to malloc, so that none pile up where tasks end. Under AddressSanitizer
// every block comes from malloc, so that it detects uses after free. Blocks are aligned to a cache
// line; an object that needs more has memory of its own.
#pragma once

#include <array>
#include <cstddef>
#include <new>

#include "atoll/runtime/export.hpp"

namespace atl::detail {

class JobMemory {
 public:
  static constexpr std::size_t kStep = 64;      // sizes are multiples of a cache line
  static constexpr std::size_t kLargest = 512;  // larger blocks come from malloc
  static constexpr int kKept = 256;             // blocks of each size, at most 576 KiB in all

  JobMemory() = default;
  JobMemory(const JobMemory&) = delete;
  JobMemory& operator=(const JobMemory&) = delete;
  ATOLL_EXPORT ~JobMemory();

  void* take(std::size_t bytes) {
#ifndef __SANITIZE_ADDRESS__
    const std::size_t at = (bytes - 1) / kStep;
    if (at < kClasses && shelves_[at].first != nullptr) [[likely]] {
      Shelf& shelf = shelves_[at];
      Block* block = shelf.first;
      shelf.first = block->next;
      --shelf.count;
      return block;
    }
#endif
    return allocate(bytes);
  }

  void give(void* memory, std::size_t bytes) noexcept {
#ifndef __SANITIZE_ADDRESS__
    const std::size_t at = (bytes - 1) / kStep;
    if (at < kClasses && shelves_[at].count < kKept) [[likely]] {
      Shelf& shelf = shelves_[at];
      shelf.first = ::new (memory) Block{shelf.first};
      ++shelf.count;
      return;
    }
#endif
    free(memory, bytes);
  }

  // The same for a T of any alignment.
  template <class T>
  void* take_for() {
    if constexpr (kOwnMemory<T>) return allocate_for<T>();
    return take(sizeof(T));
  }
  template <class T>
  void give_for(void* memory) noexcept {
    if constexpr (kOwnMemory<T>) return free_for<T>(memory);
    give(memory, sizeof(T));
  }

  // For threads that are not workers.
  ATOLL_EXPORT static void* allocate(std::size_t bytes);
  ATOLL_EXPORT static void free(void* memory, std::size_t bytes) noexcept;

  template <class T>
  static constexpr bool kOwnMemory = alignof(T) > kStep;
  template <class T>
  static void* allocate_for() {
    return ::operator new(sizeof(T), std::align_val_t{alignof(T)});
  }
  template <class T>
  static void free_for(void* memory) noexcept {
    ::operator delete(memory, sizeof(T), std::align_val_t{alignof(T)});
  }

 private:
  static constexpr std::size_t kClasses = kLargest / kStep;
  struct Block {
    Block* next;
  };
  struct Shelf {
    Block* first = nullptr;
    int count = 0;
  };
  std::array<Shelf, kClasses> shelves_;
};

}  // namespace atl::detail
