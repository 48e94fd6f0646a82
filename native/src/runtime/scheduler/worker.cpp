#include "worker.hpp"

#include <memory>
#include <new>
#include <optional>

#include "affinity.hpp"
#include "profiler/clock.hpp"
#include "stacks/overflow.hpp"

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
  if (!on_own_thread() && caller_->done()) return 0;
  const Turn turn = next_turn();
  if (yielded_.has_next() && !is_for_loop(turn)) {
    if (const Word word = yielded_.take_next(); word != 0 && take_mine(word) != 0) return word;
  }
  return on_own_thread() ? next(turn) : next_for_caller(turn);
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

void Worker::offer_to_idle(Word tag, Parking::Wave& wave) {
  const std::uint64_t idlers = idle->load(std::memory_order_relaxed);
  if (tag == 0) {
    deque.expose();
    if (wave.needs_sleeper(idlers)) count_woken(team.parking.wake_one(victims_.workers, wave));
    return;
  }
  // The searching worker may not be allowed to run a group's task: then check further.
  const Domain& domain = team.domains.of(tag);
  const bool sleepers = team.domains.has_sleepers(domain);
  if (sleepers || static_cast<std::uint32_t>(idlers) != 0) deque.expose();
  if (!sleepers) return;
  count_woken(team.parking.notify_allowed(
      victims_.workers, [&](int other) { return domain.allows(other); }, wave));
}

inline bool Worker::keep(Word word) noexcept {
  if (detail::tag_of(word) != tag || !team.domains.allows(word, rank)) return false;
  if (detail::kind_of(word) == detail::WordKind::fiber && yielded_.put_next(word)) return true;
  try {
    deque.push(word);
    return true;
  } catch (const std::bad_alloc&) {
    return false;  // to inject it needs no memory
  }
}

void Worker::make_ready(Word word) noexcept {
  if (!keep(word)) return team.inject(word);
  detail::published(this, tag);
}

void Worker::make_ready(Word word, Parking::Wave& wave) noexcept {
  if (!keep(word)) return team.inject(word, wave);
  detail::light_fence();  // as detail::published
  if (idle->load(std::memory_order_relaxed) != 0) offer_to_idle(tag, wave);
}

void Worker::hand_over() noexcept {
  Parking::Wave wave(team.parking);
  if (const Word next = yielded_.take_next()) team.inject(next, wave);
  for (int held = 1; !deque.looks_empty(); ++held) {
    if (held % Parking::Wave::kMostHeld == 0) wave.let_run();
    // 0 where a thief is faster.
    if (const Word oldest = deque.take_oldest()) team.inject(oldest, wave);
  }
}

}  // namespace atl::runtime
