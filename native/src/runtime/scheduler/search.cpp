// Where and in which order a worker looks for work, and when it gives up and sleeps.
#include <algorithm>
#include <array>

#include "profiler/clock.hpp"
#include "waiting/spin.hpp"
#include "worker.hpp"

namespace atl::runtime {

namespace {

// A search that finds nothing tries all victims this many times before the worker sleeps: a few
// microseconds, about the cost of a futex wake-up for its waker. More would waste a core.
constexpr int kRounds = 24;
// A worker that forks sees the searcher at once and offers words. One that is still to do so after
// this many rounds is in a long task, and worth the interrupt of `Deque::force`.
constexpr int kRoundsUnforced = 4;
// Tries within one ring before the next: near work may be about to appear.
constexpr int kPassesPerRing = 2;

}  // namespace

Word Worker::next(Turn turn) {
  if (const Word word = own_work(turn)) return word;

  far_.begin();
  team.parking.start_search(rank, chiplet_);
  for (;;) {
    if (const Word word = search()) {
      end_search();
      return word;
    }
    recorder_->found_nothing();
    team.domains.count_asleep(rank);
    team.parking.prepare(rank);
    // The end comes last: a team with work does not stop.
    if (anything_in_sight()) {
      team.parking.cancel(rank);
    } else if (team.stopping()) {
      team.parking.cancel(rank);
      end_search();
      return 0;
    } else {
      recorder_->parking();
      team.parking.commit(rank);
      recorder_->unparked();
      far_.begin();
    }
    team.domains.count_awake(rank);
  }
}

// Whatever was found: a producer of work for everyone may have relied on this search. To look
// whether one did would cost a fence as dear as a wake-up in vain, unless all others sleep. Nearest
// to this worker, not to whom it stole from, whose order is that worker's own to change.
void Worker::end_search() {
  count_woken(team.parking.end_search(rank, victims_.workers,
                                      [this] { return has_own_work() || queues_offer(); }));
}

// Follows its seat. Without memory for the order of its victims the worker keeps the old one and,
// since it does not sleep before that is new, tries again.
void Worker::keep_up() noexcept {
  if (!on_own_thread()) return;  // the thread itself does when it wakes
  try {
    sit_down();
  } catch (const std::bad_alloc&) {
  }
}

Word Worker::own_work(Turn turn) {
  if (placement_ != team.placement()) [[unlikely]]
    keep_up();
  if (turn == Turn::fair) {
    if (const Word word = fair_work()) return word;
  }
  if (const Word word = urgent()) return word;
  if (on_own_thread()) {
    if (const Word word = bound_->queue.pop()) return word;
  }
  if (const Word word = own_next(turn, false)) return word;
  return shared(0);
}

Word Worker::urgent() {
  return team.urgent.pop([this](Word word) { return may_run(word); });
}

// Two tasks that wake each other would keep a worker busy for ever with the newest words of its
// deque. A fair turn takes what they leave waiting: what came from outside, what has yielded, and
// the oldest word of the deque, which otherwise only thieves take; and, where urgent tasks keep the
// worker from all of its own, the task that goes next. A different one comes first each time, since
// each may never run out: a task that yields is itself a yielded task. A stand-in looks here
// whether it is to go, since tasks that switch to each other keep it from its loop.
Word Worker::fair_work() {
  constexpr unsigned kSources = 3;
  if (!on_own_thread() && caller_goes()) [[unlikely]]
    return 0;  // the loop finds the same, and leaves
  if (placement_ != team.placement()) [[unlikely]]
    keep_up();
  const unsigned first = turn_.load(std::memory_order_relaxed) / kFairness;
  for (unsigned at = first; at < first + kSources; ++at) {
    Word word = 0;
    switch (at % kSources) {
      case 0: word = shared(first / kSources); break;
      case 1: word = take_mine(yielded_.pop()); break;
      default:
        // By turns, since neither may ever run out.
        if (first / kSources % 2 != 0) word = take_mine(yielded_.take_next());
        if (word == 0) word = take_mine(deque.take_oldest());
        if (word == 0) word = take_mine(yielded_.take_next());
    }
    if (word != 0) return word;
  }
  return 0;
}

Word Worker::send_away(Word word) {
  team.inject(word);
  return 0;
}

// By turns the queues of all come first and those of its other domains, or one of them that never
// runs empty would keep the other out. `from`: how many chiplets after its own the look begins.
Word Worker::shared(unsigned from) {
  const std::size_t chiplet = static_cast<unsigned>(chiplet_) + from;
  if (!on_own_thread()) return team.anywhere.pop(chiplet);
  const bool others_first = others_first_;
  Word word = others_first ? 0 : team.anywhere.pop(chiplet);
  others_first_ = word != 0;
  if (word == 0) word = from_its_domains();
  if (word == 0 && others_first) word = team.anywhere.pop(chiplet);
  return word;
}

// What it took may be of a group that this worker was a member of only until now.
Word Worker::from_its_domains() {
  return take_mine(team.domains.pop(rank, last_domain_, [this](const Domain& domain) {
    count_woken(team.parking.notify_allowed(victims_.workers,
                                            [&](int other) { return domain.allows(other); }));
  }));
}

Word Worker::search() {
  // A stand-in may have left some, and keep_stolen needs an empty deque.
  if (has_own_work()) {
    if (const Word word = own_work(next_turn())) return word;
  }
  for (int round = 0; round < kRounds; ++round) {
    if (!on_own_thread() && caller_->done()) return 0;
    const bool force = round >= kRoundsUnforced;
    for (const VictimRing& ring : victims_.rings) {
      const std::span<const int> ranks = victims_.of(ring);
      for (int pass = 0; pass < kPassesPerRing; ++pass) {
        // A random start, then all in turn: each victim is tried once.
        std::size_t at = random() % ranks.size();
        for (std::size_t left = ranks.size(); left > 0; --left) {
          Worker& victim = team.worker(ranks[at]);
          if (!leaves_alone(victim, ring.distance)) {
            if (const Word word = steal_from(victim, ring.distance, force)) return word;
          }
          if (++at == ranks.size()) at = 0;
        }
      }
    }
    if (const Word word = own_work(next_turn())) return word;
    for (int times = 0; times < 16; ++times) pause();
  }
  for (const VictimRing& ring : victims_.rings) {
    for (const int other : victims_.of(ring)) {
      if (const Word word = steal_next_from(team.worker(other), ring.distance)) return word;
    }
  }
  return 0;
}

// Most workers take their next task within a microsecond, and a thief would only make them wait for
// its fence. One that has not chosen a task for so long is in a long one.
Word Worker::steal_next_from(Worker& victim, Distance distance) {
  const auto allowed = [this](Word word) { return may_run(word); };
  if (!victim.yielded_.offers_next(allowed)) return 0;
  const unsigned turn = victim.turn_.load(std::memory_order_relaxed);
  for (int times = 0; times < 64; ++times) pause();
  if (victim.turn_.load(std::memory_order_relaxed) != turn) return 0;
  const Word word = victim.yielded_.steal_next(allowed);
  if (word != 0) recorder_->stole(victim.rank, distance);
  return word;
}

// Far work that the victim gets to before this worker could. It reads the victim's lines only if
// there is work.
bool Worker::leaves_alone(const Worker& victim, Distance distance) {
  const std::int64_t cost_ns = team.steal_costs[static_cast<std::size_t>(distance)];
  if (cost_ns == 0) return false;
  const auto number = static_cast<std::size_t>(victim.rank);
  const std::int64_t words = std::max<std::int64_t>(victim.deque.size_hint(), 0) +
                             static_cast<std::int64_t>(victim.yielded_.size_hint());
  if (words == 0) {
    far_.nothing_at(number);
    return true;
  }
  const std::uint64_t ran = victim.counts.tasks.read() + victim.counts.inline_forks.read();
  return !far_.pays_now(number, words, ran, now_ns(), cost_ns);
}

Word Worker::steal_from(Worker& victim, Distance distance, bool force) {
  const auto allowed = [this](Word word) { return may_run(word); };
  std::array<Word, kMostStolen> taken;
  Word word = 0;
  if (!victim.deque.looks_empty()) {
    // Lost means that another thread got it; the deque may have more, but so may the next victim.
    detail::Deque::Stolen stolen = victim.deque.steal(taken, allowed);
    if (force && stolen.outcome == detail::Deque::Steal::hidden && victim.deque.offers(allowed)) {
      victim.deque.force();
      stolen = victim.deque.steal(taken, allowed);
    }
    if (stolen.count > 0) {
      word = taken[0];
      keep_stolen({taken.data() + 1, stolen.count - 1}, detail::tag_of(word));
    }
  }
  if (word == 0 && victim.yielded_.offers(allowed)) {
    const std::size_t count =
        victim.yielded_.steal(std::span(taken).first<kMostYielded>(), allowed);
    // A worker that fell asleep meanwhile saw none of these words, so keep_yielded notifies.
    for (std::size_t at = 1; at < count; ++at) keep_yielded(taken[at]);
    if (count > 0) word = taken[0];
  }
  if (word != 0) recorder_->stole(victim.rank, distance);
  return word;
}

// The deque is empty: this worker searches. And it has room for all of them.
void Worker::keep_stolen(std::span<const Word> words, Word of_tag) {
  if (words.empty()) return;
  enter_domain(of_tag);
  for (const Word word : words) deque.push(word);
  detail::published(this, of_tag);
}

bool Worker::queues_offer() {
  if (!bound_->queue.looks_empty() || !team.anywhere.looks_empty()) return true;
  if (placement_ != team.placement() || team.domains.has_words_for(rank)) return true;
  if (team.urgent.offers([this](Word word) { return team.domains.allows(word, rank); }))
    return true;
  return false;
}

// The look between 'I am about to sleep' and sleeping: everything that this worker could run.
bool Worker::anything_in_sight() {
  if (queues_offer()) return true;
  const auto allowed = [this](Word word) { return team.domains.allows(word, rank); };
  for (const int other : victims_.workers) {
    Worker& victim = team.worker(other);
    if (victim.deque.offers(allowed) || victim.yielded_.offers(allowed) ||
        victim.yielded_.offers_next(allowed)) {
      return true;
    }
  }
  return false;
}

std::uint64_t Worker::random() {
  // xorshift64 (Marsaglia 2003): good enough to spread thieves, one word of state.
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  return random_;
}

}  // namespace atl::runtime
