#include "churn_kernels.hpp"

#include <cstdlib>
#include <cstring>
#include <new>

namespace atl::probe {
namespace {

using Word = std::uint64_t;

Word stamp_of(const void* item, std::size_t bytes) {
  return (static_cast<Word>(reinterpret_cast<std::uintptr_t>(item)) ^ bytes) * 0x9e3779b97f4a7c15;
}

// xorshift64* (S. Vigna): takes a few cycles, and its state is one word.
std::uint64_t draw(std::uint64_t& state) {
  state ^= state >> 12;
  state ^= state << 25;
  state ^= state >> 27;
  return state * 0x2545f4914f6cdd1d;
}

struct RealItems {
  static void* make(std::size_t bytes) {
    void* const item = std::malloc(bytes);
    if (item == nullptr) throw std::bad_alloc();
    churn_write(item, bytes);
    return item;
  }
  static std::size_t release(void* item) {
    const std::size_t bytes = churn_check(item);
    std::free(item);
    return bytes;
  }
};

// The size represents the item.
struct NullItems {
  static void* make(std::size_t bytes) { return reinterpret_cast<void*>(bytes); }
  static std::size_t release(void* item) { return reinterpret_cast<std::uintptr_t>(item); }
};

}  // namespace

void churn_write(void* item, std::size_t bytes) {
  const Word stamp = stamp_of(item, bytes);
  auto* const data = static_cast<std::byte*>(item);
  const Word size = bytes;
  std::memcpy(data, &size, sizeof size);
  std::size_t at = sizeof size;
  for (; at + sizeof stamp <= bytes; at += sizeof stamp) {
    std::memcpy(data + at, &stamp, sizeof stamp);
  }
  std::memcpy(data + at, &stamp, bytes - at);
}

std::size_t churn_check(const void* item) {
  const auto* const data = static_cast<const std::byte*>(item);
  Word size = 0;
  std::memcpy(&size, data, sizeof size);
  if (size < kChurnLeastBytes || size > kChurnMostBytes) return 0;
  const Word stamp = stamp_of(item, size);
  Word different = 0;
  std::size_t at = sizeof size;
  for (; at + sizeof stamp <= size; at += sizeof stamp) {
    Word word;
    std::memcpy(&word, data + at, sizeof word);
    different |= word ^ stamp;
  }
  if (std::memcmp(data + at, &stamp, size - at) != 0) different = 1;
  return different == 0 ? size : 0;
}

ChurnThread::ChurnThread(std::span<void*> slots, std::span<ChurnBox> inbox,
                         std::span<ChurnBox> outbox, std::uint64_t seed)
    : slots_(slots), inbox_(inbox), outbox_(outbox), random_(seed | 1) {
  // Neighbouring seeds start with similar numbers.
  for (int round = 0; round < 16; ++round) draw(random_);
}

template <typename Items>
void* ChurnThread::make(std::size_t bytes) {
  live_bytes_ += static_cast<std::int64_t>(bytes);
  return Items::make(bytes);
}

template <typename Items>
void ChurnThread::release(void* item) {
  const std::size_t bytes = Items::release(item);
  right_ &= bytes != 0;
  live_bytes_ -= static_cast<std::int64_t>(bytes);
}

template <typename Items>
void ChurnThread::work(std::size_t operations) {
  for (; operations > 0; --operations) {
    const std::uint64_t random = draw(random_);
    void*& slot = slots_[random & (slots_.size() - 1)];
    const bool crosses = (random >> 61) == 0;
    const std::size_t place = (random >> 40) & (outbox_.size() - 1);
    if (slot == nullptr) {
      void* const item = make<Items>(churn_size(draw(random_)));
      void* none = nullptr;
      // Release, because the other thread reads the item's bytes.
      if (!crosses || !outbox_[place].compare_exchange_strong(none, item, std::memory_order_release,
                                                              std::memory_order_relaxed)) {
        slot = item;
      }
    } else {
      // Acquire: pairs with the release of the writing thread.
      void* const given =
          crosses ? inbox_[place].exchange(nullptr, std::memory_order_acquire) : nullptr;
      release<Items>(given != nullptr ? given : slot);
      if (given == nullptr) slot = nullptr;
    }
  }
}

template <typename Items>
void ChurnThread::empty() {
  for (void*& slot : slots_) {
    if (slot != nullptr) release<Items>(slot);
    slot = nullptr;
  }
  for (ChurnBox& box : inbox_) {
    void* const item = box.exchange(nullptr, std::memory_order_acquire);
    if (item != nullptr) release<Items>(item);
  }
}

void ChurnThread::run(std::size_t operations) { work<RealItems>(operations); }
void ChurnThread::run_null(std::size_t operations) { work<NullItems>(operations); }
void ChurnThread::drain() { empty<RealItems>(); }
void ChurnThread::drain_null() { empty<NullItems>(); }

}  // namespace atl::probe
