#include "domain.hpp"

#include <chrono>
#include <exception>
#include <numeric>
#include <thread>

#include "atoll/runtime/places.hpp"
#include "waiting/spin.hpp"
#include "waiting/wait_on.hpp"

namespace atl::runtime {

void WorkerSet::assign(std::span<const int> workers) {
  auto next = workers.begin();
  for (std::size_t at = 0; at < bits_.size(); ++at) {
    Word bits = 0;
    for (; next != workers.end() && static_cast<std::size_t>(*next) / 64 == at; ++next) {
      bits |= Word{1} << (*next % 64);
    }
    bits_[at].store(bits, std::memory_order_relaxed);
  }
}

bool WorkerSet::meets(const WorkerSet& other) const {
  for (std::size_t at = 0; at < bits_.size(); ++at) {
    const Word both =
        bits_[at].load(std::memory_order_relaxed) & other.bits_[at].load(std::memory_order_relaxed);
    if (both != 0) return true;
  }
  return false;
}

int WorkerSet::below(std::size_t rank) const {
  int count = 0;
  for (std::size_t at = 0; at <= rank / 64 && at < bits_.size(); ++at) {
    const Word below = at < rank / 64 ? ~Word{0} : (Word{1} << (rank % 64)) - 1;
    count += std::popcount(bits_[at].load(std::memory_order_relaxed) & below);
  }
  return count;
}

// The last end wakes the waiter. Only read-modify-writes change ended_, so an end before the bit is
// seen by the waiter, which looks after it has set the bit, and an end after it sees the bit. The
// end that sees it compares with begun_, and does not read too little there: what an ended task has
// begun was counted before its end (release, and acquire here), what others began before the wait
// (acquire of the bit). The domain outlives its group, so it may be touched after the last end.
void Domain::count_ended() {
  if ((ended_.fetch_add(kEnd, std::memory_order_acq_rel) & kAwaited) != 0 && all_ended()) {
    wake_all(&ended_);
  }
}

void Domain::await_all_ended() noexcept {
  // Most often the waiter comes from a join of the last task, which counts its end right after.
  constexpr int kPauses = 64;
  for (int times = 0; times < kPauses; ++times) {
    if (all_ended()) return;
    pause();
  }
  ended_.fetch_or(kAwaited, std::memory_order_acq_rel);
  const auto runs = [](void* self) { return !static_cast<const Domain*>(self)->all_ended(); };
  while (!all_ended()) {
    try {
      wait_while(&ended_, runs, this, {});
    } catch (const std::exception&) {  // no memory for another stack
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
}

// Delegates, so that the destructor frees the domain if its members find no memory.
Domains::Domains(std::size_t workers) : Domains(Empty(), workers) { set_members(add(), {}); }

Domains::~Domains() {
  for (std::size_t number = 0; number < used_; ++number) delete &(*this)[number];
  for (std::atomic<Page*>& page : pages_) delete page.load(std::memory_order_relaxed);
}

std::size_t Domains::add(int group) {
  const std::lock_guard lock(mutex_);
  if (!free_.empty()) {
    // The object stays: a worker may look at it for words of its last life.
    const std::size_t number = free_.back();
    free_.pop_back();
    (*this)[number].in_use_.store(true, std::memory_order_relaxed);
    (*this)[number].group_.store(group, std::memory_order_relaxed);
    return number;
  }
  if (used_ == kMost) {
    throw RuntimeFault("65536 groups and places at once are the limit: drop groups that are done");
  }
  auto domain = std::make_unique<Domain>(workers_);
  domain->group_.store(group, std::memory_order_relaxed);
  if (used_ % kPage == 0) free_.reserve(used_ + kPage);  // `drop` must not throw
  std::atomic<Page*>& page = pages_[used_ / kPage];
  if (used_ % kPage == 0) page.store(new Page, std::memory_order_release);
  page.load(std::memory_order_relaxed)
      ->domains[used_ % kPage]
      .store(domain.release(), std::memory_order_release);
  return used_++;
}

void Domains::drop(std::size_t number) noexcept {
  Domain& domain = (*this)[number];
  waiting(number).fetch_and(~(Word{1} << (number % 64)), std::memory_order_relaxed);
  domain.members_.assign({});
  domain.ended_.fetch_and(~Domain::kAwaited, std::memory_order_relaxed);
  domain.in_use_.store(false, std::memory_order_relaxed);
  domain.group_.store(0, std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  free_.push_back(number);
}

void Domains::set_members(std::size_t number, std::span<const int> members) {
  WorkerSet& set = (*this)[number].members_;
  if (!members.empty()) return set.assign(members);
  std::vector<int> everybody(workers_);
  std::iota(everybody.begin(), everybody.end(), 0);
  set.assign(everybody);
}

// The bit is changed by read-modify-writes only. A worker that clears it after this push does so by
// one that reads ours, or a later one: it then sees the word in its second look, and sets the bit
// again. One that has cleared it before leaves it to us.
void Domains::push(Word word) noexcept {
  const auto number = static_cast<std::size_t>(word >> detail::kDomainShift);
  (*this)[number].queue.push(word);  // [waiting-push]
  // All look at the queue of domain 0, and each at its own.
  if (number <= workers_) return;
  waiting(number).fetch_or(Word{1} << (number % 64), std::memory_order_acq_rel);  // [waiting-set]
}

// Called by a worker that has found the queue empty. A worker that sleeps since the bit was clear
// may have overlooked what came meanwhile, though its producer relied on the bit: the caller wakes
// one in the producer's place.
bool Domains::still_empty(std::size_t number) noexcept {
  const Word bit = Word{1} << (number % 64);
  waiting(number).fetch_and(~bit, std::memory_order_acq_rel);  // [waiting-clear]
  if ((*this)[number].queue.looks_empty()) return true;        // [waiting-look]
  waiting(number).fetch_or(bit, std::memory_order_acq_rel);    // [waiting-again]
  return false;
}

}  // namespace atl::runtime
