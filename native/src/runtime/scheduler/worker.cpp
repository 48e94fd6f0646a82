#include "worker.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <new>
#include <optional>

#include "affinity.hpp"
#include "profiler/clock.hpp"
#include "stacks/overflow.hpp"
#include "waiting/spin.hpp"

// ATOLL_EXPORT again: gcc loses that of a declaration with a tls_model.
ATOLL_EXPORT constinit thread_local atl::detail::WorkerHead* atl_rt_worker = nullptr;

namespace atl::detail {

#if !defined(__x86_64__)
[[gnu::noinline]] WorkerHead* this_worker() {
  asm volatile("");  // keeps the call a call
  return atl_rt_worker;
}
#endif

}  // namespace atl::detail

// What is passed is a flag (a yield's) or an After.
void atl_rt_arrived(void* passed) noexcept {
  const auto bits = reinterpret_cast<std::uintptr_t>(passed);
  if ((bits & 1) != 0) {
    reinterpret_cast<std::atomic<bool>*>(bits - 1)->store(false, std::memory_order_release);
  } else {
    auto* const after = static_cast<atl::runtime::After*>(passed);
    after->run(after);
  }
}

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

struct GiveBack : After {
  StackPool* pool;
  Fiber* fiber;
};

}  // namespace

Worker::Worker(Team& team_, int rank_)
    : team(team_),
      rank(rank_),
      far_(static_cast<std::size_t>(team_.size())),
      random_(0x9e3779b97f4a7c15 * (static_cast<std::uint64_t>(rank_) + 1)),
      thread_fiber_(thread_fiber()) {
  idle = &team.parking.word();
  bound_ = &team.place_domains.of_worker(rank);
  exceptions_ = &exception_globals();
  fiber_ = home_ = &thread_fiber_;
}

Worker::~Worker() {
  for (std::size_t at = 0; at < spare_count_; ++at) team.stacks.give(spares_[at]);
}

void Worker::main(Team& team, int rank) {
  std::optional<AlternateStack> overflow_stack;
  std::unique_ptr<Worker> worker;
  try {
    overflow_stack.emplace();
    team.seats.sit(rank, this_thread());  // on its core before its memory is made
    worker = std::make_unique<Worker>(team, rank);
    worker->sit_down();
    worker->spares_[worker->spare_count_++] = team.stacks.take(worker->node_, &Worker::loop);
    atl_rt_worker = worker.get();
    team.announce(*worker);
  } catch (...) {
    team.announce_fault(std::current_exception());
  }
  // The start may have failed elsewhere.
  if (!team.stopping()) {
    worker->recorder_ = &team.profiler().recorder(rank);
    try {
      team.profiler().attach(rank);
    } catch (const std::bad_alloc&) {
      // It goes without counters.
    }
    if (team.lent) {
      team.lent->work(rank);
      team.await_stop();  // until then the governor looks at this worker, and its end at all
    } else {
      begin_switch(worker->fiber());
      worker->switch_to(worker->loop_for(0), nullptr);
    }
    team.profiler().detach(rank);
  }
  atl_rt_worker = nullptr;
  team.await_all_left();
}

void Worker::sit_down() {
  const std::size_t placement = team.placement();
  const std::vector<int> cores = team.seats.cores();
  victims_ = victims(team.seats.places, cores, rank);
  const bool first = std::exchange(placement_, placement) == 0;
  if (std::exchange(core_, cores[static_cast<std::size_t>(rank)]) != core_ && !first) {
    recorder_->moved_to(core_);
  }
  const Core& core = team.seats.places.cores[static_cast<std::size_t>(core_)];
  node_ = core.node;
  chiplet_ = core.chiplet;
  // Lent workers do not come here again when they move. For them the kernel's default, local, is
  // right.
  if (!team.lent && team.seats.pins() && team.seats.places.nodes().size() > 1) prefer_node(node_);
}

Fiber& Worker::loop_for(Word word) {
  Fiber* spare = nullptr;
  if (spare_count_ > 0) {
    spare = spares_[--spare_count_];
  } else {
    try {
      spare = team.stacks.take(node_, &Worker::loop);
    } catch (...) {
      if (word != 0) make_ready(word);
      throw;
    }
  }
  first_ = word;
  return *spare;
}

// Leaves a loop that is then nobody's: it becomes a spare, or its fiber goes back to the pool, but
// only once it is left.
inline void Worker::retire_for(Fiber& to) {
  Fiber* const mine = fiber_;
  if (spare_count_ < kSpares) {
    spares_[spare_count_++] = mine;
    switch_to(to, nullptr);
  } else {
    GiveBack give{{[](After* after) noexcept {
                    const auto* back = static_cast<GiveBack*>(after);
                    back->pool->give(back->fiber);
                  }},
                  &team.stacks,
                  mine};
    switch_to(to, &give);
  }
}

// Inlined into the loop: a switch leaves it, and one more return would be mispredicted.
[[gnu::always_inline]] inline void Worker::run(Word word) {
  enter_domain(detail::tag_of(word));
  if (team.metered()) [[unlikely]]
    begin_metering(word);
  void* const pointer = detail::pointer_of(word);
  if (detail::kind_of(word) == detail::WordKind::fiber) {
    begin_switch(*fiber_);
    auto& task = *static_cast<Fiber*>(pointer);
    take_up(task);
    return retire_for(task);
  }
  auto* const job = static_cast<detail::Job*>(pointer);
  context = job->context;
  recorder_->job_begin(false);
  job->execute(job);
  here()->recorder_->job_end();
}

// Inlined as far as a loop goes that begins with a task, or follows one that has resumed another.
[[gnu::always_inline]] inline Word Worker::next() {
  if (meter_.running()) [[unlikely]]
    end_metering();
  if (const Word word = std::exchange(first_, 0)) return word;
  if (!on_own_thread()) [[unlikely]]
    return next_for_caller();
  const Turn turn = next_turn();
  if (yielded_.has_next() && !is_for_loop(turn)) {
    if (const Word word = yielded_.take_next(); word != 0 && take_mine(word) != 0) return word;
  }
  return next(turn);
}

void Worker::loop(void* passed) {
  if (passed != nullptr) atl_rt_arrived(passed);
  // Another worker may run this loop after each call.
  for (;;) {
    if (const Word word = here()->next()) [[likely]] {
      here()->run(word);
    } else {
      begin_switch(here()->fiber());
      here()->retire_for(*here()->home_);
    }
  }
}

// From here until this worker next looks for work. Direct switches between tasks that yield are
// booked to the first of them. Not for a stand-in: fills and L3s are counted for the workers' own
// threads, and work without them would look as if it needed little.
void Worker::begin_metering(Word word) {
  if (!on_own_thread()) return;
  const auto* job = static_cast<detail::Job*>(detail::pointer_of(word));
  const bool fresh = detail::kind_of(word) != detail::WordKind::fiber;
  // The type of a resumed task is not recorded; all of them are one type.
  const void* const type = fresh ? reinterpret_cast<const void*>(job->execute) : nullptr;
  // Functions need not be aligned: shift out what word_of would take for its kind.
  const Meter::Key key =
      ((reinterpret_cast<std::uintptr_t>(type) << 1 | 1) & ~(~Word{0} << detail::kDomainShift)) |
      tag;
  const std::int64_t now = now_ns();
  meter_.begin(key, counts.inline_forks.read(), now);
  recorder_->type_begins(fresh ? reinterpret_cast<std::uintptr_t>(type) : kResumedType, now);
}

void Worker::end_metering() {
  const std::int64_t now = now_ns();
  recorder_->type_ends(now);
  meter_.end(counts.inline_forks.read(), now,
             [this](Meter::Key key) { return team.domains.in_use(key >> detail::kDomainShift); });
}

namespace {

struct Yielding : After {
  Worker* worker;  // a yield switches stacks, not threads
  Word word;
};

}  // namespace

// Most often another task of the same domain has yielded before: then this is a change of stacks
// and of places in the queue. It wakes nobody, because as many tasks are ready as before. Nothing
// here may need a frame on the stack, or the compiler would not leave by a jump, and one more
// return would be mispredicted.
void Worker::yield() {
  recorder_->yielded();
  const Turn turn = next_turn();
  Fiber& self = *fiber_;
  begin_switch(self);
  if ((turn != Turn::own && (turn == Turn::fair || has_new_work())) || yielded_.size_hint() == 0 ||
      recorder_->traces())
    return yield_with_care(turn);
  check_canary(self);
  // What is in the queue is suspended, and with thieves shut out it stays so.
  const Word next = yielded_.begin_exchange(
      detail::word_of(&self, detail::WordKind::fiber, tag), [this](Word oldest) {
        if (detail::tag_of(oldest) != tag || !team.domains.allows(oldest, rank)) return false;
        const auto& fiber = *static_cast<const Fiber*>(detail::pointer_of(oldest));
        return recorder_->may_follow(note_of(fiber).section);
      });
  if (next == 0) return yield_with_care(turn);

  leave_note(recorder_->section());
  fiber_ = static_cast<Fiber*>(detail::pointer_of(next));
  const Note note = note_of(*fiber_);
  context = note.context;
  if (note.worker != this) counts.migrations.add();
  recorder_->section_follows(note.section);
  recorder_->switched();
  switch_fiber_and_return(self, *fiber_, *exceptions_, yielded_.inside());
}

template <class Leave>
[[gnu::always_inline]] inline void Worker::leave_as_yielded(Leave&& leave) {
  Yielding yielding{{[](After* after) noexcept {
                      const auto& it = *static_cast<Yielding*>(after);
                      it.worker->keep_yielded(it.word);
                    }},
                    this,
                    detail::word_of(fiber_, detail::WordKind::fiber, tag)};
  leave(&yielding);
}

void Worker::yield_with_care(Turn turn) {
  if (is_for_loop(turn)) {
    leave_as_yielded([=, this](After* after) { leave_for_loop(turn, after); });
  } else if (const Word next = own_next(turn, true)) {
    leave_as_yielded([=, this](After* after) { leave_for(next, after); });
  }
}

void Worker::leave_for_urgent() {
  const Word next = urgent();
  if (next == 0) return;
  begin_switch(*fiber_);
  try {
    leave_as_yielded([=, this](After* after) { leave_for(next, after); });
  } catch (...) {  // no stack for it: it is ready, and this task goes on
  }
}

void Worker::keep_yielded(Word word) {
  if (take_mine(word) == 0) return;
  try {
    yielded_.push(word);
  } catch (const std::bad_alloc&) {
    return team.inject(word);  // which needs no memory
  }
  // Other workers may take it while this one is busy.
  detail::published(this, detail::tag_of(word));
}

void Worker::offer_to_idle(Word tag) {
  const std::uint64_t idlers = idle->load(std::memory_order_relaxed);
  if (tag == 0) {
    deque.expose();
    if (detail::wants_wake(idlers)) count_woken(team.parking.wake_one(victims_.workers));
    return;
  }
  // The searching worker may not be allowed to run a group's task: then check further.
  const Domain& domain = team.domains.of(tag);
  const bool sleepers = team.domains.has_sleepers(domain);
  if (sleepers || static_cast<std::uint32_t>(idlers) != 0) deque.expose();
  if (!sleepers) return;
  count_woken(team.parking.notify_allowed(victims_.workers,
                                          [&](int other) { return domain.allows(other); }));
}

void Worker::make_ready(Word word) noexcept {
  if (detail::tag_of(word) != tag || !team.domains.allows(word, rank)) return team.inject(word);
  if (detail::kind_of(word) != detail::WordKind::fiber || !yielded_.put_next(word)) {
    try {
      deque.push(word);
    } catch (const std::bad_alloc&) {
      return team.inject(word);  // which needs no memory
    }
  }
  detail::published(this, tag);
}

void Worker::hand_over() noexcept {
  if (const Word next = yielded_.take_next()) team.inject(next);
  while (!deque.looks_empty()) {
    // 0 where a thief is faster.
    if (const Word oldest = deque.take_oldest()) team.inject(oldest);
  }
}

// Where and in which order a worker looks for work, and when it gives up and sleeps.

Word Worker::next(Turn turn) {
  if (const Word word = own_work(turn)) return word;

  far_.begin();
  team.parking.start_search(rank, chiplet_);
  for (;;) {
    if (const Word word = search()) {
      // Whatever was found: a producer of work for everyone may have relied on this search, and
      // looking whether one did would cost a fence as dear as a wake-up in vain. Nearest to this
      // worker, not to whom it stole from, whose order is that worker's own to change.
      count_woken(team.parking.end_search(rank, victims_.workers));
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
      team.parking.end_search(rank, victims_.workers);
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
  const auto allowed = [this](Word word) { return team.domains.allows(word, rank); };
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
    const std::size_t count = victim.yielded_.steal(taken, allowed);
    for (std::size_t at = 1; at < count; ++at) yielded_.push(taken[at]);
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
