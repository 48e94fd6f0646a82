// A worker's deque of 64-bit words: its owner pushes and pops at the bottom, thieves take from the
// top. While nobody is idle, its owner uses plain loads and stores only.
//
// The deque is split (van Dijk and van de Pol, "Lace: Non-blocking Split Deque for Work-Stealing",
// MuCoCoS 2014; Rito and Paulino, "Scheduling Computations with Provably Low Synchronization
// Overheads", J. Scheduling 2022):
//
//        top           split          bottom
//         |   public     |   private    |
//         +--------------+--------------+
//
// Thieves take from the public part, oldest first. The owner moves the split
//  - up, when a worker is idle and nothing is public (`expose`), by half of the private words;
//  - to the bottom and top with it, when it has no private word left: it takes all public words
//    back and pushes them again, as private ones.
// A thief that finds private words only may move the split up, too (`force`): their owner may be
// in a long task. It closes the public part, makes a heavy fence, and reads bottom: that is
// Dekker's algorithm with asymmetric fences, as in yield_queue.hpp, and the owner's half of it is a
// load.
//
// Top and split are one 64-bit word. As long as that is not closed, neither ever falls, so it never
// has the same value twice, and a CAS proves that nothing has happened since it was read. Indices
// have 32 bits and wrap around: a thief would have to stand still between its load and its CAS
// while exactly 2^32 words, or a multiple, go through the public part.
//
// What it promises
//  - Each word pushed is taken exactly once, by its owner or by `steal`. Words are nonzero.
//  - Whatever is in it shows: `looks_empty` and `offers` never miss a word that was there before
//    and stays.
//  - Nothing blocks. But a thief gets nothing while the owner takes public words back (a copy of
//    them), and only one thief at a time can force.
//  - push throws std::bad_alloc if it cannot grow, or beyond 2^29 words, and then changes nothing.
//    Capacity doubles and never shrinks. A thief may still read a replaced buffer, so it is freed
//    only with the deque; all replaced buffers together are smaller than the current one.
//
// native/models/deque.pml models this file with store buffers; both use the same labels, such as
// [pop-fence].
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <utility>

#include "atoll/runtime/asymmetric_fence.hpp"
#include "atoll/runtime/export.hpp"

namespace atl::detail {

class Deque {
 public:
  using Word = std::uint64_t;
  using Index = std::uint32_t;

  enum class Steal {
    got,      // the words are the thief's
    empty,    // there was nothing
    hidden,   // nothing public: see `force`
    lost,     // another thread changed it meanwhile: try again
    refused,  // `allowed` refused the word on top, which is still there
  };
  struct Stolen {
    Steal outcome;
    std::size_t count;  // 0 unless got
  };

  // 8 KiB: two pages. A tree of forks does not fill it, a loop of spawns does.
  static constexpr Index kFirstCapacity = 1024;

  // `capacity` of the first buffer: a power of two.
  explicit Deque(Index capacity = kFirstCapacity) { adopt(make_buffer(capacity, nullptr), 0); }

  Deque(const Deque&) = delete;
  Deque& operator=(const Deque&) = delete;

  ~Deque() {
    Buffer* buffer = buffer_.load(std::memory_order_relaxed);
    while (buffer != nullptr) ::operator delete(std::exchange(buffer, buffer->older));
  }

  // Owner. `word` is not 0. Returns where it is, for `pop_from`.
  Index push(Word word) {
    const Index bottom = bottom_.load(std::memory_order_relaxed);  // only the owner writes
    if (bottom == full_at_) [[unlikely]]
      return push_where_full(word);
    slots_[bottom & mask_].store(word, std::memory_order_relaxed);
    // Release, as every store to bottom: a thief that reads this bottom (or a later one, which in
    // C++20 does not carry on this one's release) reads the slot, the buffer, and what the word
    // points to as they are now.
    bottom_.store(bottom + 1, std::memory_order_release);  // [push-publish]
    return bottom;
  }

  // Owner. Takes the word pushed last; 0 if there is none.
  Word pop() {
    const Index last = bottom_.load(std::memory_order_relaxed) - 1;
    if (!claim(last)) [[unlikely]]
      return pop_public(last);
    return slots_[last & mask_].load(std::memory_order_relaxed);
  }

  // Owner. Takes `word`, which push has put there, if it is the last one and private; else changes
  // nothing. Saves pop's wait for the index: bottom is only compared.
  bool pop_from(Index at, Word word) {
    if (bottom_.load(std::memory_order_relaxed) != at + 1 ||
        slots_[at & mask_].load(std::memory_order_relaxed) != word) [[unlikely]]
      return false;
    if (claim(at)) [[likely]]
      return true;
    bottom_.store(at + 1, std::memory_order_release);
    return false;
  }

  // Owner. What pop would return now, though a thief may take it first. 0 if there is none.
  Word newest() const {
    if (looks_empty()) return 0;
    return slots_[(bottom_.load(std::memory_order_relaxed) - 1) & mask_].load(
        std::memory_order_relaxed);
  }

  // Owner. Takes the oldest word; 0 if there is none or a thief is faster.
  Word take_oldest() {
    expose();
    Word word = 0;
    return steal({&word, 1}, [](Word) { return true; }).count == 0 ? 0 : word;
  }

  // Owner. If nothing is public, half of the private words are from here on, rounded up.
  [[gnu::noinline]] void expose() { open(1); }

  // Any thread. Takes the oldest public words: half of them, rounded up, or as many as `into` has
  // room for. `allowed(word)` says whether the thief may take the first; the others are of the same
  // kind. It may use only the bits of the word: until it is taken, another thread may take it and
  // free what it points to.
  template <class Allowed>
  Stolen steal(std::span<Word> into, Allowed&& allowed) {
    // Acquire: what the thread released that made the words public.
    Ends ends = ends_.load(std::memory_order_acquire);  // [steal-look]
    if (ends.closed()) return {Steal::lost, 0};
    const Index there = ends.split - ends.top;
    if (there == 0) return {size_hint() > 0 ? Steal::hidden : Steal::empty, 0};
    // After the ends, so it is the buffer in which these words were pushed, or a copy of it.
    // Acquire: for the header of a buffer published after that.
    const Buffer* const buffer = buffer_.load(std::memory_order_acquire);
    // Before the CAS: once top has moved, the owner may reuse the slots. Words read too late are
    // thrown away because the CAS then fails.
    const Index count = share(there, into.size());
    for (Index at = 0; at < count; ++at) {
      into[at] = buffer->slots()[(ends.top + at) & buffer->mask].load(std::memory_order_relaxed);
    }
    if (!allowed(into[0])) {
      const bool same = ends_.load(std::memory_order_relaxed) == ends;
      return {same ? Steal::refused : Steal::lost, 0};
    }
    // Release: the reads of the slots happen before the owner's reuse (push_where_full acquires).
    if (!ends_.compare_exchange_strong(ends, {ends.split, ends.top + count},
                                       std::memory_order_acq_rel,
                                       std::memory_order_relaxed)) {  // [steal-cas]
      return {Steal::lost, 0};
    }
    return {Steal::got, count};
  }

  // Any thread but the owner. Makes half of the words public if all are private. It interrupts the
  // CPUs of this process (heavy_fence). The owner, if it pops meanwhile, does it itself.
  ATOLL_EXPORT void force();

  // Any thread. Whether there is a word that `allowed` allows, public or private. A caller that
  // then goes to sleep needs a fence first (parking.hpp).
  template <class Allowed>
  bool offers(Allowed&& allowed) const {
    const Ends ends = ends_.load(std::memory_order_acquire);
    // Acquire: the slot. Of bottom and top, the owner raises bottom first where it changes both.
    if (!is_below(ends.top, bottom_.load(std::memory_order_acquire))) return false;
    const Buffer* const buffer = buffer_.load(std::memory_order_acquire);
    const Word word = buffer->slots()[ends.top & buffer->mask].load(std::memory_order_relaxed);
    // A word that is gone says nothing about the next one, so the answer is yes.
    return allowed(word) || ends_.load(std::memory_order_relaxed) != ends;
  }

  bool looks_empty() const { return size_hint() <= 0; }

  // Any thread. The approximate number of words; below 0 while the owner pops.
  std::int32_t size_hint() const {
    const Index top = ends_.load(std::memory_order_acquire).top;  // see offers
    return static_cast<std::int32_t>(bottom_.load(std::memory_order_relaxed) - top);
  }

 private:
  // Far beyond every word: added to the split, it makes the owner's claim fail.
  static constexpr Index kFar = Index{1} << 30;
  static constexpr Index kMost = Index{1} << 29;  // words

  // Of the public part. While it is closed nobody but the closer, and the owner, may change it.
  struct alignas(8) Ends {
    Index split;
    Index top;
    bool closed() const { return split - top >= kMost; }
    Index real_split() const { return closed() ? split - kFar : split; }
    Ends when_closed() const { return {split + kFar, top}; }
    bool operator==(const Ends&) const = default;
  };

  // Followed by its mask + 1 slots.
  struct Buffer {
    Buffer* older;  // the one it replaced
    Index mask;     // capacity - 1

    std::atomic<Word>* slots() { return reinterpret_cast<std::atomic<Word>*>(this + 1); }
    const std::atomic<Word>* slots() const {
      return reinterpret_cast<const std::atomic<Word>*>(this + 1);
    }
  };
  static_assert(sizeof(Buffer) % alignof(std::atomic<Word>) == 0);

  static Buffer* make_buffer(Index capacity, Buffer* older) {
    void* memory = ::operator new(sizeof(Buffer) + capacity * sizeof(std::atomic<Word>));
    auto* buffer = new (memory) Buffer{older, capacity - 1};
    std::uninitialized_value_construct_n(buffer->slots(), capacity);
    return buffer;
  }

  void adopt(Buffer* buffer, Index top) {
    slots_ = buffer->slots();
    mask_ = buffer->mask;
    full_at_ = top + mask_ + 1;
    buffer_.store(buffer, std::memory_order_release);
  }

  static bool is_below(Index a, Index b) { return static_cast<std::int32_t>(b - a) > 0; }

  // How many of `there` public words one thief takes.
  static Index share(Index there, std::size_t room) {
    const Index half = (there + 1) / 2;
    return half < room ? half : static_cast<Index>(room);
  }

  // Owner. Lowers bottom to `last`, then looks whether the word there is private. A thief that
  // forces closes the public part, makes a heavy fence and reads bottom. So either the owner sees
  // the closed part, beyond any `last`, or the thief sees a bottom at or below `last` (or one of
  // words pushed since) and leaves this word alone.
  bool claim(Index last) {
    bottom_.store(last, std::memory_order_release);  // [pop-lower]
    light_fence();                                   // [pop-fence]
    // Relaxed: the owner wrote the word that it takes.
    const Ends ends = ends_.load(std::memory_order_relaxed);  // [pop-look]
    return static_cast<std::int32_t>(last - ends.split) >= 0;
  }

  // Owner. Makes public (private words + round) / 2 words, if none is public or a thief waits for
  // some. False: a thief has changed something.
  bool open(Index round) {
    Ends ends = ends_.load(std::memory_order_relaxed);
    const Index split = ends.real_split();
    if (split != ends.top) return true;
    const Index words = bottom_.load(std::memory_order_relaxed) - split;
    const Index more = (words + round) / 2;
    if (more == 0 && !ends.closed()) return true;
    // A CAS, since a thief may close it or open it by force. Release: the words.
    return ends_.compare_exchange_strong(ends, {split + more, ends.top}, std::memory_order_release,
                                         std::memory_order_relaxed);  // [expose-cas]
  }

  // pop, where the word at `last` is not private, or a thief asks for words, or there is none.
  [[gnu::noinline, gnu::cold]] Word pop_public(Index last) {
    const Index bottom = last + 1;
    for (;;) {
      bottom_.store(bottom, std::memory_order_release);  // [pop-restore]
      // Acquire: the thief that opened it has read bottom, which comes before what is written now.
      Ends ends = ends_.load(std::memory_order_acquire);
      if (ends.closed()) {
        open(0);  // keeps the last word, and ends the thief's attempt
      } else if (ends.split != bottom) {
        if (claim(last)) return slots_[last & mask_].load(std::memory_order_relaxed);
      } else if (ends.top == ends.split) {
        return 0;
      } else if (ends_.compare_exchange_strong(ends, ends.when_closed(), std::memory_order_acquire,
                                               std::memory_order_relaxed)) {  // [retake-cas]
        return retake(ends);
      }
    }
  }

  // Owner. Takes the last of the public words and makes the others private. The public part is
  // closed, and there is no private word. The words move up, so that top needs not fall.
  Word retake(Ends ends) {
    const Word last = slots_[(ends.split - 1) & mask_].load(std::memory_order_relaxed);
    const Index count = ends.split - ends.top - 1;
    for (Index at = 0; at < count; ++at) {
      // Upwards: the slot that is written is either free or that of a word that was read before.
      slots_[(ends.split + at) & mask_].store(
          slots_[(ends.top + at) & mask_].load(std::memory_order_relaxed),
          std::memory_order_relaxed);
    }
    full_at_ = ends.split + mask_ + 1;
    // Bottom first: whoever reads the new top must not find the deque empty.
    bottom_.store(ends.split + count, std::memory_order_release);      // [retake-bottom]
    ends_.store({ends.split, ends.split}, std::memory_order_release);  // [retake-open]
    return last;
  }

  // The deque looks full by the owner's old view of top: reads top again, and grows if necessary.
  // Then calls push again, as a tail call, so that push needs no frame.
  [[gnu::noinline, gnu::cold]] Index push_where_full(Word word) {
    const Index bottom = bottom_.load(std::memory_order_relaxed);
    // Acquire: a thief that has moved top no longer reads the slot that is reused now.
    const Index top = ends_.load(std::memory_order_acquire).top;
    if (bottom - top <= mask_) {
      full_at_ = top + mask_ + 1;
      return push(word);
    }
    if (mask_ + 1 == kMost) throw std::bad_alloc();
    Buffer* grown = make_buffer(2 * (mask_ + 1), buffer_.load(std::memory_order_relaxed));
    for (Index at = top; at != bottom; ++at) {
      grown->slots()[at & grown->mask].store(slots_[at & mask_].load(std::memory_order_relaxed),
                                             std::memory_order_relaxed);
    }
    adopt(grown, top);
    return push(word);
  }

  // Two lines, for Intel's pairwise prefetch and Arm's cores with lines of 128 bytes.
  static constexpr std::size_t kApart = 128;

  // Written by thieves. The buffer is here because a thief that reads top needs it next.
  alignas(kApart) std::atomic<Ends> ends_{Ends{0, 0}};
  static_assert(std::atomic<Ends>::is_always_lock_free);
  std::atomic<Buffer*> buffer_{nullptr};
  std::atomic<bool> forced_{false};  // a thief is in `force`

  // Written by the owner. Its own view of the buffer shares bottom's line, which it has anyway.
  alignas(kApart) std::atomic<Index> bottom_{0};
  Index full_at_ = 0;  // the bottom at which the buffer is full, by the last look at top
  Index mask_ = 0;
  std::atomic<Word>* slots_ = nullptr;
};

}  // namespace atl::detail
