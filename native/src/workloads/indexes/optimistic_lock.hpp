// A lock whose readers write nothing: they look whether something has changed meanwhile.
//
// Optimistic lock coupling (Leis et al., "The ART of Practical Synchronization", DaMoN 2016): a
// reader takes the lock's version, reads, and asks whether that is still the version. On its way
// down a tree it does so hand over hand: after it has the version of the child, it asks for the
// parent's again. So the child was the parent's child when its version was read. A writer turns
// the version that it has read into the lock, which fails if anything has changed since.
//
// What a lock protects is in Fields. Orders (Boehm, "Can Seqlocks Get Along with Programming
// Language Memory Models?", MSPC 2012): a reader's loads are acquire, so that `still` comes after
// them; a writer's stores are release, so that who sees one of them sees also that the lock was
// taken. On x86 both are plain moves, and no fence is needed.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "spin.hpp"

namespace atl::workloads {

// What one thread writes under a lock while others read it.
template <class T>
class Field {
 public:
  Field() = default;
  explicit Field(T value) : value_(value) {}
  [[nodiscard]] T load() const { return value_.load(std::memory_order_acquire); }
  void store(T value) { value_.store(value, std::memory_order_release); }

 private:
  std::atomic<T> value_{};
};

class OptimisticLock {
 public:
  // The version, when nobody holds the lock.
  [[nodiscard]] std::uint64_t read() const {
    // Acquire: what the last holder wrote.
    std::uint64_t seen = word_.load(std::memory_order_acquire);
    for (Spin spin; (seen & 1) != 0; seen = word_.load(std::memory_order_acquire)) spin.wait();
    return seen;
  }

  // Nothing has changed since `version` was read, and nobody holds the lock. Relaxed: the loads
  // before it are acquire.
  [[nodiscard]] bool still(std::uint64_t version) const {
    return word_.load(std::memory_order_relaxed) == version;
  }

 private:
  friend class Exclusive;
  std::atomic<std::uint64_t> word_{0};  // odd: held. Holding it once adds two
};

// Holds a lock, if nothing had changed since its version was read.
class Exclusive {
 public:
  // Acquire: what the last holder wrote.
  Exclusive(OptimisticLock& lock, std::uint64_t version)
      : lock_(lock.word_.compare_exchange_strong(version, version + 1, std::memory_order_acquire,
                                                 std::memory_order_relaxed)
                  ? &lock
                  : nullptr),
        version_(version) {}
  Exclusive(const Exclusive&) = delete;
  Exclusive& operator=(const Exclusive&) = delete;
  // Release: what this thread wrote.
  ~Exclusive() {
    if (lock_ != nullptr) {
      lock_->word_.store(version_ + (changed_ ? 2 : 0), std::memory_order_release);
    }
  }

  explicit operator bool() const { return lock_ != nullptr; }
  // Readers may go on as if the lock had not been held.
  void unchanged() { changed_ = false; }

 private:
  OptimisticLock* lock_;
  std::uint64_t version_;
  bool changed_ = true;
};

}  // namespace atl::workloads
