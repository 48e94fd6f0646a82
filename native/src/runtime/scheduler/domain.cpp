#include "domain.hpp"

#include <bit>

#include "atoll/runtime/places.hpp"

namespace atl::runtime {

Domain::Domain(std::size_t workers) : members_((workers + 63) / 64), workers_(workers) {
  set_members({});
}

void Domain::set_members(std::span<const int> workers) {
  std::vector<Word> bits(members_.size());
  for (const int worker : workers) {
    const auto at = static_cast<std::size_t>(worker);
    bits[at / 64] |= Word{1} << (at % 64);
  }
  if (workers.empty()) {
    for (std::size_t at = 0; at < workers_; ++at) bits[at / 64] |= Word{1} << (at % 64);
  }
  for (std::size_t at = 0; at < bits.size(); ++at) {
    members_[at].store(bits[at], std::memory_order_relaxed);
  }
}

int Domain::members_below(std::size_t rank) const {
  int count = 0;
  for (std::size_t at = 0; at <= rank / 64 && at < members_.size(); ++at) {
    const Word below = at < rank / 64 ? ~Word{0} : (Word{1} << (rank % 64)) - 1;
    count += std::popcount(members_[at].load(std::memory_order_relaxed) & below);
  }
  return count;
}

void Domain::push(Word word) {
  const std::lock_guard lock(mutex_);
  queue_.push_back(word);
  size_.store(queue_.size(), std::memory_order_relaxed);
}

Word Domain::pop() {
  if (looks_empty()) return 0;
  const std::lock_guard lock(mutex_);
  if (queue_.empty()) return 0;
  const Word word = queue_.front();
  queue_.pop_front();
  size_.store(queue_.size(), std::memory_order_relaxed);
  return word;
}

Domains::Domains(std::size_t workers)
    : workers_(workers), table_(std::make_unique<std::atomic<Domain*>[]>(kMost)) {
  add({});
}

Domains::~Domains() {
  for (std::size_t at = 0; at < used_; ++at) delete table_[at].load(std::memory_order_relaxed);
}

std::size_t Domains::add(std::span<const int> members) {
  const std::lock_guard lock(mutex_);
  std::size_t number = used_;
  if (!free_.empty()) {
    // The object stays: a worker with an old list of its domains may still read it.
    number = free_.back();
    free_.pop_back();
    (*this)[number].set_members(members);
    (*this)[number].use(true);
  } else if (used_ == kMost) {
    throw RuntimeFault("65536 groups and places at once are the limit: drop groups that are done");
  } else {
    auto domain = std::make_unique<Domain>(workers_);
    domain->set_members(members);
    table_[used_++].store(domain.release(), std::memory_order_release);
  }
  epoch_.fetch_add(1, std::memory_order_acq_rel);
  return number;
}

void Domains::drop(std::size_t number) {
  const std::lock_guard lock(mutex_);
  free_.push_back(number);
  (*this)[number].use(false);
  epoch_.fetch_add(1, std::memory_order_acq_rel);
}

std::vector<std::size_t> Domains::of_worker(int worker) const {
  const std::lock_guard lock(mutex_);
  std::vector<std::size_t> mine;
  for (std::size_t number = 1; number < used_; ++number) {
    if ((*this)[number].allows(worker)) mine.push_back(number);
  }
  return mine;
}

void Domains::set_members(std::size_t number, std::span<const int> members) {
  const std::lock_guard lock(mutex_);
  (*this)[number].set_members(members);
  epoch_.fetch_add(1, std::memory_order_acq_rel);
}

}  // namespace atl::runtime
