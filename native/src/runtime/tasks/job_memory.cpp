#include "atoll/runtime/detail/job_memory.hpp"

#include <pthread.h>

#include <mutex>
#include <new>
#include <utility>

namespace atl::detail {

// The batches of one size that no worker has. Never destroyed: handles of tasks may be dropped in
// destructors of static objects.
struct alignas(JobMemory::kLine) JobMemory::Depot {
  std::mutex mutex;
  Block* first = nullptr;

  static std::array<Depot, kClasses> all;  // by size

  void put(Block* batch, int count) noexcept {
    const std::lock_guard lock(mutex);
    batch->next_batch = std::exchange(first, batch);
    batch->count = count;
  }
  // Null: there are none.
  Block* take() noexcept {
    const std::lock_guard lock(mutex);
    Block* const batch = first;
    if (batch != nullptr) first = batch->next_batch;
    return batch;
  }
  // One block, of or for a thread that is not a worker.
  void put_one(void* memory) noexcept {
    const std::lock_guard lock(mutex);
    Block* const batch = first;
    const bool joins = batch != nullptr && batch->count < kBatch;
    first = ::new (memory) Block(joins ? batch : nullptr);
    first->next_batch = joins ? batch->next_batch : batch;
    first->count = joins ? batch->count + 1 : 1;
  }
  Block* take_one() noexcept {
    const std::lock_guard lock(mutex);
    Block* const block = first;
    if (block == nullptr) return nullptr;
    first = block->next;
    if (first == nullptr) {
      first = block->next_batch;
    } else {
      first->next_batch = block->next_batch;
      first->count = block->count - 1;
    }
    return block;
  }

  // A batch of new memory.
  static Block* cut(std::size_t at) {
    // A child of fork() begins without batches: a thread of the parent may hold a lock.
    [[maybe_unused]] static const int once = pthread_atfork(nullptr, nullptr, [] {
      for (Depot& depot : all) ::new (&depot) Depot;
    });
    const std::size_t bytes = (at + 1) * kStep;
    auto* const memory =
        static_cast<std::byte*>(::operator new(kBatch * bytes, std::align_val_t{kLine}));
    Block* batch = nullptr;
    for (int index = kBatch; index-- > 0;) batch = ::new (memory + index * bytes) Block(batch);
    batch->count = kBatch;
    return batch;
  }
};

constinit std::array<JobMemory::Depot, JobMemory::kClasses> JobMemory::Depot::all;

JobMemory::~JobMemory() {
  for (std::size_t at = 0; at < kClasses; ++at) {
    Shelf& shelf = shelves_[at];
    if (shelf.first != nullptr) Depot::all[at].put(shelf.first, shelf.count);
    if (shelf.aside != nullptr) Depot::all[at].put(shelf.aside, kBatch);
  }
}

void JobMemory::refill(std::size_t at) {
  Shelf& shelf = shelves_[at];
  if (shelf.aside != nullptr) {
    shelf.first = std::exchange(shelf.aside, nullptr);
    shelf.count = kBatch;
    return;
  }
  shelf.first = Depot::all[at].take();
  if (shelf.first == nullptr) shelf.first = Depot::cut(at);
  shelf.count = shelf.first->count;
}

void JobMemory::put_aside(std::size_t at) noexcept {
  Shelf& shelf = shelves_[at];
  if (shelf.aside != nullptr) Depot::all[at].put(shelf.aside, kBatch);
  shelf.aside = std::exchange(shelf.first, nullptr);
  shelf.count = 0;
}

// All blocks of a class have its full size: the thread that frees one knows only its object's.
void* JobMemory::allocate(std::size_t bytes) {
  const std::size_t at = (bytes - 1) / kStep;
  if (!kPlain || at >= kClasses) {
    return ::operator new((at + 1) * kStep, std::align_val_t{kLine});
  }
  if (Block* const block = Depot::all[at].take_one()) return block;
  Block* const batch = Depot::cut(at);
  Depot::all[at].put(batch->next, kBatch - 1);
  return batch;
}

void JobMemory::free(void* memory, std::size_t bytes) noexcept {
  const std::size_t at = (bytes - 1) / kStep;
  if (kPlain && at < kClasses) return Depot::all[at].put_one(memory);
  ::operator delete(memory, (at + 1) * kStep, std::align_val_t{kLine});
}

}  // namespace atl::detail
