// A domain: the workers that may run a task, and a queue for tasks that no worker's deque holds.
//
// Domain 0 has all workers. Each worker, chiplet and node has a domain, and so has each group of a
// user's. A task has its domain's number in the top bits of its word, so that a thief can tell
// without following the pointer whether it may take the word.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "atoll/runtime/detail/worker.hpp"
#include "word_queue.hpp"

namespace atl::runtime {

class Domain {
 public:
  // Without members until set_members.
  explicit Domain(std::size_t workers) : members_((workers + 63) / 64), workers_(workers) {}

  // Whether this worker may run the domain's tasks. One load of a line that rarely changes.
  bool allows(int worker) const {
    const auto at = static_cast<std::size_t>(worker);
    return (members_[at / 64].load(std::memory_order_relaxed) >> (at % 64) & 1) != 0;
  }

  // How many members there are, at least 1, and how many of them have lower ranks than this worker.
  int size() const { return std::max(1, members_below(workers_)); }
  int rank_of(int worker) const { return members_below(static_cast<std::size_t>(worker)); }

  // With an empty list, all workers are members: a task never waits for a missing worker.
  void set_members(std::span<const int> workers);
  void clear_members();

  // Members that sleep or are about to: counted before a worker's last check of the queues.
  void count_asleep(int more) { asleep_.fetch_add(more, std::memory_order_relaxed); }
  bool has_sleepers() const { return asleep_.load(std::memory_order_relaxed) > 0; }

  // Tasks with a handle, for callers that wait for all of them.
  void count_begun() { begun_.fetch_add(1, std::memory_order_relaxed); }
  void count_ended() { ended_.fetch_add(1, std::memory_order_release); }
  bool all_ended() const {
    // Ends first: so a task counted as ended is also counted as begun.
    const Word ended = ended_.load(std::memory_order_acquire);
    return begun_.load(std::memory_order_relaxed) == ended;
  }

  // Between Domains::add and drop.
  bool in_use() const { return in_use_.load(std::memory_order_relaxed); }
  void use(bool on) { in_use_.store(on, std::memory_order_relaxed); }

  WordQueue queue;

 private:
  int members_below(std::size_t rank) const;

  std::vector<std::atomic<Word>> members_;  // one bit per worker
  std::size_t workers_;
  std::atomic<bool> in_use_{true};
  alignas(128) std::atomic<int> asleep_{0};  // apart from what every thief reads
  std::atomic<Word> begun_{0};
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
    return *(*page)[number % kPage].load(std::memory_order_acquire);
  }
  Domain& of(Word word) const {
    return (*this)[static_cast<std::size_t>(word >> detail::kDomainShift)];
  }

  bool allows(Word word, int worker) const {
    return word >> detail::kDomainShift == 0 || of(word).allows(worker);
  }

  // The number of a new domain, which has no members yet. Throws RuntimeFault if all numbers are
  // taken.
  std::size_t add();
  // The domain must have no task left.
  void drop(std::size_t number);
  bool in_use(std::size_t number) const { return (*this)[number].in_use(); }

  // The numbers of the domains that this worker serves, without 0. Locks.
  std::vector<std::size_t> of_worker(int worker) const;
  // Changes with every change of any domain's members.
  std::size_t epoch() const { return epoch_.load(std::memory_order_acquire); }
  void set_members(std::size_t number, std::span<const int> members);

 private:
  Domains() = default;

  std::size_t workers_ = 0;
  static constexpr std::size_t kPage = 256;
  using Page = std::array<std::atomic<Domain*>, kPage>;
  std::array<std::atomic<Page*>, kMost / kPage> pages_{};
  mutable std::mutex mutex_;
  std::size_t used_ = 0;
  std::vector<std::size_t> free_;
  std::atomic<std::size_t> epoch_{1};
};

}  // namespace atl::runtime
