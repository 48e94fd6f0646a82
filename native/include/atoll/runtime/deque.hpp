// A worker's deque of 64-bit words: its owner pushes and pops at the bottom, thieves take from the
// top.
//
// The algorithm is Chase and Lev's (SPAA 2005) with the orders of Le, Pop, Cohen and Zappa
// Nardelli, "Correct and Efficient Work-Stealing for Weak Memory Models", PPoPP 2013, and three
// departures:
//  - The two fences are seq_cst accesses instead. That is also correct in the C++ model (see
//    `pop`), costs the same one locked instruction on x86, and ThreadSanitizer understands it but
//    not fences.
//  - The owner reads top before it lowers bottom. If it finds one word, it takes it as a thief
//    would, so the last word costs one locked instruction, not two, and an empty deque none.
//  - A thief calls `allowed(word)` before it takes a word, so that it can leave one it may not run.
//
// What it promises
//  - Each word pushed is taken exactly once, by `pop` or by `steal`. Words are nonzero.
//  - Only the owner may push and pop; any thread may do the rest. Nothing blocks.
//  - push throws std::bad_alloc if it cannot grow, and then changes nothing. Capacity doubles and
//    never shrinks. A thief may still read a replaced buffer, so it is freed only with the deque;
//    all replaced buffers together are smaller than the current one.
//
// native/models/deque.pml models this file with store buffers; both use the same labels, such as
// [pop-fence].
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

namespace atl::detail {

class Deque {
 public:
  using Word = std::uint64_t;

  enum class Steal {
    got,      // `word` is the thief's
    empty,    // there was nothing
    lost,     // another thread took it first: try again
    refused,  // `allowed` refused the word on top, which is still there
  };
  struct Stolen {
    Steal outcome;
    Word word;  // 0 unless got
  };

  // 8 KiB: two pages. A tree of forks does not fill it, a loop of spawns does.
  static constexpr std::int64_t kFirstCapacity = 1024;

  // `capacity` of the first buffer: a power of two.
  explicit Deque(std::int64_t capacity = kFirstCapacity) {
    adopt(make_buffer(capacity, nullptr), 0);
  }

  Deque(const Deque&) = delete;
  Deque& operator=(const Deque&) = delete;

  ~Deque() {
    Buffer* buffer = buffer_.load(std::memory_order_relaxed);
    while (buffer != nullptr) ::operator delete(std::exchange(buffer, buffer->older));
  }

  // Owner. `word` is not 0.
  void push(Word word) {
    const std::int64_t bottom = bottom_.load(std::memory_order_relaxed);  // only the owner writes
    if (bottom == full_at_) [[unlikely]]
      return push_where_full(word);
    slots_[bottom & mask_].store(word, std::memory_order_relaxed);
    // Release: a thief that reads this bottom reads the slot, the buffer, and what the word
    // points to as they are now.
    bottom_.store(bottom + 1, std::memory_order_release);  // [push-publish]
  }

  // Owner. Takes the word pushed last; 0 if there is none.
  Word pop() {
    const std::int64_t last = bottom_.load(std::memory_order_relaxed) - 1;
    // Top only grows, so an old value errs on the side of more words: if it shows at most one,
    // there is at most one. Relaxed: the CAS decides who takes the last word.
    const std::int64_t top = top_.load(std::memory_order_relaxed);  // [pop-look]
    if (top >= last) return top > last ? 0 : take_last(top);

    // The owner claims `last` by lowering bottom, then checks how far thieves have come. A
    // thief reads top, then bottom. If the owner read a top below `last` and yet a thief took
    // `last`, then that thief read top == last and an old bottom, and each of these is seq_cst:
    //   owner lowers bottom < owner reads top         program order
    //   owner reads top < top becomes last            it read an older value
    //   top becomes last < thief reads top            the thief read that value
    //   thief reads top < thief reads bottom          program order
    //   thief reads bottom < owner lowers bottom      it read an older value
    // which is a cycle in the total order of seq_cst operations, so it is impossible.
    bottom_.store(last, std::memory_order_seq_cst);                 // [pop-lower, pop-fence]
    const std::int64_t now = top_.load(std::memory_order_seq_cst);  // [pop-top]
    if (now < last) [[likely]]
      return slots_[last & mask_].load(std::memory_order_relaxed);

    const Word word = now == last ? take_last(now) : 0;
    // Release, as every store to bottom: in C++20 a plain store of the same thread does not carry
    // on the release of the push before it, and a thief may come to read a slot through this one.
    bottom_.store(last + 1, std::memory_order_release);  // [pop-restore]
    return word;
  }

  // Owner. What pop would return now, though a thief may take it first. 0 if there is none.
  Word newest() const {
    if (looks_empty()) return 0;
    return slots_[(bottom_.load(std::memory_order_relaxed) - 1) & mask_].load(
        std::memory_order_relaxed);
  }

  // Any thread. `allowed(word)` may use only the bits of the word: until it is taken, another
  // thread may take it and free what it points to.
  template <class Allowed>
  Stolen steal(Allowed&& allowed) {
    // Top before bottom, both seq_cst: see `pop`. Bottom's load also acquires what push released.
    std::int64_t top = top_.load(std::memory_order_seq_cst);              // [steal-top]
    const std::int64_t bottom = bottom_.load(std::memory_order_seq_cst);  // [steal-bottom]
    if (top >= bottom) return {Steal::empty, 0};
    // After bottom, so it is the buffer in which `top` was pushed, or a copy of it. Acquire: for
    // the header of a buffer published after that bottom.
    const Buffer* buffer = buffer_.load(std::memory_order_acquire);
    // Before the CAS: once top has moved, the owner may reuse the slot. A word read too late is
    // thrown away because the CAS then fails.
    const Word word = buffer->slots()[top & buffer->mask].load(std::memory_order_relaxed);
    if (!allowed(word)) {
      return {top_.load(std::memory_order_relaxed) == top ? Steal::refused : Steal::lost, 0};
    }
    // seq_cst: see `pop`. Its release part makes the slot's read above happen before the owner's
    // reuse of the slot (push_where_full acquires top).
    if (!top_.compare_exchange_strong(top, top + 1, std::memory_order_seq_cst,
                                      std::memory_order_relaxed)) {  // [steal-cas]
      return {Steal::lost, 0};
    }
    return {Steal::got, word};
  }

  Stolen steal() {
    return steal([](Word) { return true; });
  }

  // Any thread. Whether a thief that may take words allowed by `allowed` would find one. A caller
  // that then goes to sleep needs a fence first (parking.hpp).
  template <class Allowed>
  bool offers(Allowed&& allowed) const {
    // As steal does it, without taking.
    const std::int64_t top = top_.load(std::memory_order_seq_cst);
    if (top >= bottom_.load(std::memory_order_seq_cst)) return false;
    const Buffer* buffer = buffer_.load(std::memory_order_acquire);
    const Word word = buffer->slots()[top & buffer->mask].load(std::memory_order_relaxed);
    // A word that is gone says nothing about the next one, so the answer is yes.
    return allowed(word) || top_.load(std::memory_order_relaxed) != top;
  }

  bool looks_empty() const { return size_hint() <= 0; }

  // Any thread. The approximate number of words; below 0 while the owner pops.
  std::int64_t size_hint() const {
    const std::int64_t top = top_.load(std::memory_order_relaxed);
    return bottom_.load(std::memory_order_relaxed) - top;
  }

 private:
  // Followed by its mask + 1 slots.
  struct Buffer {
    Buffer* older;      // the one it replaced
    std::int64_t mask;  // capacity - 1

    std::atomic<Word>* slots() { return reinterpret_cast<std::atomic<Word>*>(this + 1); }
    const std::atomic<Word>* slots() const {
      return reinterpret_cast<const std::atomic<Word>*>(this + 1);
    }
  };
  static_assert(sizeof(Buffer) % alignof(std::atomic<Word>) == 0);

  static Buffer* make_buffer(std::int64_t capacity, Buffer* older) {
    const auto count = static_cast<std::size_t>(capacity);
    void* memory = ::operator new(sizeof(Buffer) + count * sizeof(std::atomic<Word>));
    auto* buffer = new (memory) Buffer{older, capacity - 1};
    std::uninitialized_value_construct_n(buffer->slots(), count);
    return buffer;
  }

  void adopt(Buffer* buffer, std::int64_t top) {
    slots_ = buffer->slots();
    mask_ = buffer->mask;
    full_at_ = top + mask_ + 1;
    buffer_.store(buffer, std::memory_order_release);
  }

  // Takes the word at `top`, the last one, by the thieves' CAS, unless a thief is faster.
  Word take_last(std::int64_t top) {
    const Word word = slots_[top & mask_].load(std::memory_order_relaxed);
    // seq_cst: it is one of those that move top (see `pop`).
    return top_.compare_exchange_strong(top, top + 1, std::memory_order_seq_cst,
                                        std::memory_order_relaxed)  // [pop-cas]
               ? word
               : 0;
  }

  // The deque looks full by the owner's old view of top: reads top again, and grows if necessary.
  // Then calls push again, as a tail call, so that push needs no frame.
  [[gnu::noinline, gnu::cold]] void push_where_full(Word word) {
    const std::int64_t bottom = bottom_.load(std::memory_order_relaxed);
    // Acquire: a thief that has moved top no longer reads the slot that is reused now.
    const std::int64_t top = top_.load(std::memory_order_acquire);
    if (bottom - top <= mask_) {
      full_at_ = top + mask_ + 1;
      return push(word);
    }
    Buffer* grown = make_buffer(2 * (mask_ + 1), buffer_.load(std::memory_order_relaxed));
    for (std::int64_t at = top; at < bottom; ++at) {
      grown->slots()[at & grown->mask].store(slots_[at & mask_].load(std::memory_order_relaxed),
                                             std::memory_order_relaxed);
    }
    adopt(grown, top);
    push(word);
  }

  // Two lines, for Intel's pairwise prefetch and Arm's cores with lines of 128 bytes.
  static constexpr std::size_t kApart = 128;

  // Written by thieves. The buffer is here because a thief that reads top needs it next.
  alignas(kApart) std::atomic<std::int64_t> top_{0};
  std::atomic<Buffer*> buffer_{nullptr};

  // Written by the owner. Its own view of the buffer shares bottom's line, which it has anyway.
  alignas(kApart) std::atomic<std::int64_t> bottom_{0};
  std::int64_t full_at_ = 0;  // the bottom at which the buffer is full, by the last look at top
  std::int64_t mask_ = 0;
  std::atomic<Word>* slots_ = nullptr;
};

}  // namespace atl::detail
