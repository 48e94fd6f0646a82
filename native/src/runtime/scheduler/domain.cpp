#include "domain.hpp"

#include <bit>

#include "atoll/runtime/places.hpp"

namespace atl::runtime {

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

void Domain::clear_members() {
  for (std::atomic<Word>& bits : members_) bits.store(0, std::memory_order_relaxed);
}

// Delegates, so that the destructor frees the domain if its members find no memory.
Domains::Domains(std::size_t workers) : Domains() {
  workers_ = workers;
  set_members(add(), {});
}

Domains::~Domains() {
  for (std::size_t number = 0; number < used_; ++number) delete &(*this)[number];
  for (std::atomic<Page*>& page : pages_) delete page.load(std::memory_order_relaxed);
}

std::size_t Domains::add() {
  const std::lock_guard lock(mutex_);
  if (!free_.empty()) {
    // The object stays: a worker with an old list of its domains may still read it.
    const std::size_t number = free_.back();
    free_.pop_back();
    (*this)[number].use(true);
    return number;
  }
  if (used_ == kMost) {
    throw RuntimeFault("65536 groups and places at once are the limit: drop groups that are done");
  }
  auto domain = std::make_unique<Domain>(workers_);
  if (used_ % kPage == 0) free_.reserve(used_ + kPage);  // `drop` must not throw
  std::atomic<Page*>& page = pages_[used_ / kPage];
  if (used_ % kPage == 0) page.store(new Page{}, std::memory_order_release);
  (*page.load(std::memory_order_relaxed))[used_ % kPage].store(domain.release(),
                                                               std::memory_order_release);
  return used_++;
}

void Domains::drop(std::size_t number) {
  const std::lock_guard lock(mutex_);
  free_.push_back(number);
  (*this)[number].use(false);
  (*this)[number].clear_members();
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
