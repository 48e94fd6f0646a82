// A domain: the workers that may run a task, and a queue for tasks that no worker's deque holds.
//
// Domain 0 has all workers. Each worker, chiplet and node has a domain, and so has each group of a
// user's. A task has its domain's number in the top bits of its word, so that a thief can tell
// without following the pointer whether it may take the word.
//
// Workers keep no list of the domains that they serve: they look at the domains whose queues may
// hold words (`waiting`), and ask each whether it allows them. So a domain is made, changed and
// dropped without a word to any worker, and domains without queued words cost nothing.
//
// native/models/domain.pml models how the look finds them; both use the same labels, such as
// [waiting-set].
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "atoll/runtime/detail/worker.hpp"
#include "word_queue.hpp"

namespace atl::runtime {

// A set of workers that any thread may read while it changes: one bit each.
class WorkerSet {
 public:
  explicit WorkerSet(std::size_t workers) : bits_((workers + 63) / 64) {}

  bool has(int worker) const {
    const auto at = static_cast<std::size_t>(worker);
    return (bits_[at / 64].load(std::memory_order_relaxed) >> (at % 64) & 1) != 0;
  }
  void add(int worker) {
    const auto at = static_cast<std::size_t>(worker);
    bits_[at / 64].fetch_or(Word{1} << (at % 64), std::memory_order_relaxed);
  }
  void remove(int worker) {
    const auto at = static_cast<std::size_t>(worker);
    bits_[at / 64].fetch_and(~(Word{1} << (at % 64)), std::memory_order_relaxed);
  }
  // Sorted; one thread at a time.
  void assign(std::span<const int> workers);

  bool meets(const WorkerSet& other) const;
  // How many of them are below `rank`.
  int below(std::size_t rank) const;

 private:
  std::vector<std::atomic<Word>> bits_;
};

class Domain {
 public:
  // Without members until set_members.
  explicit Domain(std::size_t workers) : members_(workers), workers_(workers) {}

  // Whether this worker may run the domain's tasks. One load of a line that rarely changes.
  bool allows(int worker) const { return members_.has(worker); }
  const WorkerSet& members() const { return members_; }

  // How many members there are, at least 1, and how many of them have lower ranks than this worker.
  int size() const { return std::max(1, members_.below(workers_)); }
  int rank_of(int worker) const { return members_.below(static_cast<std::size_t>(worker)); }

  // Tasks with a handle, for callers that wait for all of them.
  void count_begun() { begun_.fetch_add(1, std::memory_order_relaxed); }
  void count_ended();
  bool all_ended() const {
    // Ends first: so a task counted as ended is also counted as begun.
    const Word ended = ended_.load(std::memory_order_acquire);
    return begun_.load(std::memory_order_relaxed) == ended / kEnd;
  }
  // Any thread; one at a time. Returns when all have ended, if nobody else begins one.
  void await_all_ended() noexcept;

  // Between Domains::add and drop.
  bool in_use() const { return in_use_.load(std::memory_order_relaxed); }
  // What `add` was given; 0 after drop.
  int group() const { return group_.load(std::memory_order_relaxed); }

  WordQueue queue;  // to fill it, Domains::push

 private:
  friend class Domains;

  static constexpr Word kAwaited = 1;  // of ended_: somebody waits for the last end
  static constexpr Word kEnd = 2;      // what one end adds

  WorkerSet members_;
  std::size_t workers_;
  std::atomic<bool> in_use_{true};
  std::atomic<int> group_{0};
  alignas(128) std::atomic<Word> begun_{0};  // apart from what every thief reads
  std::atomic<Word> ended_{0};
};

// All domains of a runtime by number. Lookup is lock-free; numbers of dropped domains are reused.
class Domains {
 public:
  static constexpr std::size_t kMost = 65536;  // 16 bits of a word

  explicit Domains(std::size_t workers);
  ~Domains();

  Domain& operator[](std::size_t number) const {
    const Page* const page = pages_[number / kPage].load(std::memory_order_acquire);
    return *page->domains[number % kPage].load(std::memory_order_acquire);
  }
  Domain& of(Word word) const {
    return (*this)[static_cast<std::size_t>(word >> detail::kDomainShift)];
  }

  bool allows(Word word, int worker) const {
    return word >> detail::kDomainShift == 0 || of(word).allows(worker);
  }

  // The number of a new domain, which has no members yet; `group`: the number of the group whose
  // it is, 0 for a place's. Throws RuntimeFault if all numbers are taken.
  std::size_t add(int group = 0);
  // The domain must have no task left.
  void drop(std::size_t number) noexcept;
  bool in_use(std::size_t number) const { return (*this)[number].in_use(); }
  // The group whose domain this is now, or 0; any number below kMost.
  int group_of(std::size_t number) const {
    const Page* const page = pages_[number / kPage].load(std::memory_order_acquire);
    if (page == nullptr) return 0;
    const Domain* const domain = page->domains[number % kPage].load(std::memory_order_acquire);
    return domain == nullptr ? 0 : domain->group();
  }

  // With an empty list, all workers are members: a task never waits for a missing worker. One
  // thread at a time for each domain. Workers that sleep do not notice: see Parking.
  void set_members(std::size_t number, std::span<const int> members);

  // Puts a word into its domain's queue. Tell a worker that it allows afterwards (Parking).
  void push(Word word) noexcept;
  // A word for this worker from the queue of a domain other than 0 and the workers' own; 0 if there
  // is none. Begins after the domain `last` and leaves there the one that it took from, so that
  // each gets its turn. O(numbers in use / 64), plus the domains with words. Calls `missed(domain)`
  // if a worker that went to sleep meanwhile may have overlooked words of that domain.
  template <class Missed>
  Word pop(int worker, std::size_t& last, Missed&& missed) {
    const auto take = [&](std::size_t number, Domain& domain) -> Word {
      Word word = domain.queue.pop();
      if (word == 0 && domain.queue.looks_empty() && !still_empty(number)) {
        missed(domain);  // [waiting-wake]
        word = domain.queue.pop();
      }
      if (word != 0) last = number;
      return word;
    };
    const std::size_t after = last + 1;
    if (const Word word = first_waiting(worker, after, kMost, take)) return word;
    return first_waiting(worker, 0, after, take);
  }
  // Whether pop may find something.
  bool has_words_for(int worker) const {
    return first_waiting(worker, 0, kMost, [](std::size_t, const Domain& domain) {
             return domain.queue.looks_empty() ? Word{0} : Word{1};
           }) != 0;
  }

  // A worker that is about to sleep, before its last check of the queues, and no longer sleeps.
  void count_asleep(int worker) { asleep_.add(worker); }
  void count_awake(int worker) { asleep_.remove(worker); }
  bool has_sleepers(const Domain& domain) const { return domain.members().meets(asleep_); }

 private:
  struct Empty {};
  Domains(Empty, std::size_t workers) : workers_(workers), asleep_(workers) {}

  static constexpr std::size_t kPage = 256;
  struct Page {
    std::array<std::atomic<Domain*>, kPage> domains{};
    // One bit for each domain: its queue may hold words. Set after every push, cleared by a worker
    // that finds the queue empty and then looks once more.
    alignas(128) std::array<std::atomic<Word>, kPage / 64> waiting{};
  };

  bool still_empty(std::size_t number) noexcept;
  std::atomic<Word>& waiting(std::size_t number) const {
    return pages_[number / kPage].load(std::memory_order_acquire)->waiting[number % kPage / 64];
  }

  // The first answer of `take(number, domain)` that is not 0, for the waiting domains of
  // [from, end) that allow the worker.
  template <class Take>
  Word first_waiting(int worker, std::size_t from, std::size_t end, Take&& take) const {
    for (std::size_t at = from / 64; at * 64 < end; ++at) {
      const Page* const page = pages_[at * 64 / kPage].load(std::memory_order_acquire);
      if (page == nullptr) return 0;
      // Relaxed: the queue orders the rest, the fences of Parking order it with sleep.
      Word bits = page->waiting[at % (kPage / 64)].load(std::memory_order_relaxed);
      if (at == from / 64) bits &= ~Word{0} << (from % 64);
      for (; bits != 0; bits &= bits - 1) {
        const std::size_t number = at * 64 + static_cast<std::size_t>(std::countr_zero(bits));
        if (number >= end) return 0;
        Domain& domain = (*this)[number];
        if (!domain.allows(worker)) continue;
        if (const Word word = take(number, domain)) return word;
      }
    }
    return 0;
  }

  const std::size_t workers_;
  std::array<std::atomic<Page*>, kMost / kPage> pages_{};
  WorkerSet asleep_;
  std::mutex mutex_;
  std::size_t used_ = 0;
  std::vector<std::size_t> free_;
};

}  // namespace atl::runtime
