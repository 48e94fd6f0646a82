// Where a worker looks for work, in which order, and when it gives up and sleeps.
#include <array>

#include "affinity.hpp"
#include "spin.hpp"
#include "worker.hpp"

namespace atl::runtime {

namespace {

// A search that finds nothing asks everybody this many times before the worker sleeps: a few
// microseconds, about what a futex wake-up costs its waker. More would burn a core for nothing.
constexpr int kRounds = 24;
// Within one ring, before going further out: work that is near may only just be appearing.
constexpr int kPassesPerRing = 2;

}  // namespace

Word Worker::next() {
  if (metered_ != 0) [[unlikely]]
    end_metering();
  if (const Word word = std::exchange(first_, 0)) return word;
  if (const Word word = own_work()) return word;

  team.parking.start_search();
  for (;;) {
    if (const Word word = search()) {
      // Whatever was found: a producer of work for everyone may have relied on this search, and
      // looking whether one did would cost a fence as dear as a wake-up in vain. Nearest to this
      // worker, not to whom it stole from, whose order is that worker's own to change.
      count_woken(team.parking.end_search(victims_.workers));
      return word;
    }
    recorder_->found_nothing();
    count_asleep(1);
    team.parking.prepare(rank);
    // The end comes last: nobody stops a team that has work.
    if (anything_in_sight()) {
      team.parking.cancel(rank);
    } else if (team.stopping()) {
      team.parking.cancel(rank);
      team.parking.end_search(victims_.workers);
      return 0;
    } else {
      recorder_->parking();
      team.parking.commit(rank);
      recorder_->unparked();
    }
    count_asleep(-1);
  }
}

Word Worker::own_work() {
  if (placement_ != team.placement()) [[unlikely]]
    sit_down();
  if (++turn_ % kFairness == 0) {
    if (const Word word = shared()) return word;
    if (const Word word = take_mine(yielded_.pop())) return word;
  }
  if (const Word word = local()) return word;
  return shared();
}

Word Worker::send_away(Word word) {
  team.inject(word);
  return 0;
}

Word Worker::local() {
  if (const Word word = bound_->pop()) return word;
  while (const Word word = deque.pop()) {
    if (take_mine(word) != 0) return word;
  }
  while (const Word word = yielded_.pop()) {
    if (take_mine(word) != 0) return word;
  }
  return 0;
}

Word Worker::shared() {
  if (domains_epoch_ != team.domains.epoch()) [[unlikely]] {
    domains_epoch_ = team.domains.epoch();
    domains_ = team.domains.of_worker(rank);
  }
  if (const Word word = team.domains[0].pop()) return word;
  for (const std::size_t number : domains_) {
    // Asked again: the list may be older than the last change.
    if (Domain& domain = team.domains[number]; domain.allows(rank)) {
      if (const Word word = domain.pop()) return word;
    }
  }
  return 0;
}

Word Worker::search() {
  for (int round = 0; round < kRounds; ++round) {
    for (const VictimRing& ring : victims_.rings) {
      const std::span<const int> ranks = victims_.of(ring);
      for (int pass = 0; pass < kPassesPerRing; ++pass) {
        // One random start, then all in turn: nobody is asked twice or left out.
        std::size_t at = random() % ranks.size();
        for (std::size_t left = ranks.size(); left > 0; --left) {
          if (const Word word = steal_from(team.worker(ranks[at]), ring.distance)) return word;
          if (++at == ranks.size()) at = 0;
        }
      }
    }
    if (const Word word = own_work()) return word;
    for (int times = 0; times < 16; ++times) pause();
  }
  return 0;
}

Word Worker::steal_from(Worker& victim, Distance distance) {
  const auto allowed = [this](Word word) { return team.domains.allows(word, rank); };
  Word word = 0;
  if (!victim.deque.looks_empty()) {
    // Lost means that somebody else got it; the deque may hold more, but the next victim may, too.
    word = victim.deque.steal(allowed).word;
  }
  if (word == 0 && victim.yielded_.size_hint() > 0) {
    std::array<Word, 32> taken;
    const std::size_t count = victim.yielded_.steal(taken, allowed);
    for (std::size_t at = 1; at < count; ++at) yielded_.push(taken[at]);
    if (count > 0) word = taken[0];
  }
  if (word != 0) recorder_->stole(victim.rank, distance);
  return word;
}

// The look between 'I am about to sleep' and sleeping: everything that this worker could run.
bool Worker::anything_in_sight() {
  if (!bound_->looks_empty() || !team.domains[0].looks_empty()) return true;
  if (domains_epoch_ != team.domains.epoch() || placement_ != team.placement()) return true;
  for (const std::size_t number : domains_) {
    if (!team.domains[number].looks_empty()) return true;
  }
  const auto allowed = [this](Word word) { return team.domains.allows(word, rank); };
  for (const int other : victims_.workers) {
    Worker& victim = team.worker(other);
    if (victim.deque.offers(allowed) || victim.yielded_.offers(allowed)) return true;
  }
  return false;
}

void Worker::count_asleep(int more) const {
  for (const std::size_t number : domains_) team.domains[number].count_asleep(more);
}

std::uint64_t Worker::random() {
  // xorshift64 (Marsaglia 2003): good enough to spread thieves, one word of state.
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  return random_;
}

}  // namespace atl::runtime
