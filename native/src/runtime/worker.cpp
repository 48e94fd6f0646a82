#include "worker.hpp"

#include <memory>

#include "affinity.hpp"
#include "overflow.hpp"
#include "profiler/clock.hpp"

constinit thread_local atl::detail::WorkerHead* atl_rt_worker = nullptr;

namespace atl::detail {

#if !defined(__x86_64__)
[[gnu::noinline]] WorkerHead* this_worker() {
  asm volatile("");  // keeps the call a call
  return atl_rt_worker;
}
#endif

}  // namespace atl::detail

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
      random_(0x9e3779b97f4a7c15 * (static_cast<std::uint64_t>(rank_) + 1)),
      thread_fiber_(thread_fiber()) {
  idle = &team.parking.word();
  bound_ = &team.bound_to(rank);
  exceptions_ = &exception_globals();
  fiber_ = &thread_fiber_;
}

Worker::~Worker() {
  for (std::size_t at = 0; at < spare_count_; ++at) team.stacks.give(spares_[at]);
}

void Worker::main(Team& team, int rank) {
  const AlternateStack overflow_stack;
  team.seat(rank, this_thread());  // on its core before its memory is made
  const auto worker = std::make_unique<Worker>(team, rank);
  atl_rt_worker = worker.get();
  team.announce(*worker);
  // The start may have failed elsewhere.
  if (!team.stopping()) {
    worker->recorder_ = &team.profiler().recorder(rank);
    worker->sit_down();
    team.profiler().attach(rank);
    worker->switch_to_loop(nullptr);
    team.profiler().detach(rank);
  }
  atl_rt_worker = nullptr;
  team.await_all_left();
}

void Worker::sit_down() {
  const bool first = std::exchange(placement_, team.placement()) == 0;
  const std::vector<int> cores = team.cores();
  if (std::exchange(core_, cores[static_cast<std::size_t>(rank)]) != core_ && !first) {
    recorder_->moved_to(core_);
  }
  node_ = team.places.cores[static_cast<std::size_t>(core_)].node;
  victims_ = victims(team.places, cores, rank);
  if (team.pins && team.places.nodes().size() > 1) prefer_node(node_);
}

// What a yield passes is the fiber that yielded, marked; else it is an After.
void Worker::arrived(void* passed) {
  const auto bits = reinterpret_cast<std::uintptr_t>(passed);
  if ((bits & kYielded) != 0) {
    const Word word = (bits & ~kYielded) | static_cast<Word>(detail::WordKind::fiber);
    return here()->keep_yielded(word);
  }
  auto* after = static_cast<After*>(passed);
  after->run(after);
}

void Worker::switch_to_loop(After* after) {
  Fiber* const spare =
      spare_count_ > 0 ? spares_[--spare_count_] : team.stacks.take(node_, &Worker::loop);
  switch_to(*spare, after);
}

void Worker::switch_to_loop_with(Word word, After* after) {
  first_ = word;
  switch_to_loop(after);
}

void Worker::loop(void* passed) {
  if (passed != nullptr) arrived(passed);
  // Who runs this loop may be another worker after each call. After the last word the worker goes
  // home to its thread's stack and ends; a fiber in which that happened is not used again.
  for (;;) {
    if (const Word word = here()->next()) {
      here()->run(word);
    } else {
      here()->switch_to(here()->thread_fiber_, nullptr);
    }
  }
}

void Worker::run(Word word) {
  tag = detail::tag_of(word);
  if (team.metered()) [[unlikely]]
    begin_metering(word);
  void* const pointer = detail::pointer_of(word);
  if (detail::kind_of(word) == detail::WordKind::fiber) {
    // This loop is then nobody's: it becomes a spare, or its fiber goes back to the pool, but only
    // once it is left.
    Fiber* const mine = fiber_;
    if (spare_count_ < kSpares) {
      spares_[spare_count_++] = mine;
      switch_to(*static_cast<Fiber*>(pointer), nullptr);
    } else {
      GiveBack give{{[](After* after) {
                      const auto* back = static_cast<GiveBack*>(after);
                      back->pool->give(back->fiber);
                    }},
                    &team.stacks,
                    mine};
      switch_to(*static_cast<Fiber*>(pointer), &give);
    }
    return;
  }
  auto* const job = static_cast<detail::Job*>(pointer);
  context = job->context;
  recorder_->job_begin(false);
  job->execute(job);
  here()->recorder_->job_end();
}

// From here until this worker next looks for work. Direct switches between tasks that yield are
// booked to the first of them.
void Worker::begin_metering(Word word) {
  const auto* job = static_cast<detail::Job*>(detail::pointer_of(word));
  const bool fresh = detail::kind_of(word) != detail::WordKind::fiber;
  // A task that goes on is of a type that nobody wrote down; all of these are one.
  const void* const type = fresh ? reinterpret_cast<const void*>(job->execute) : nullptr;
  // Functions need not be aligned: shift out what word_of would take for its kind.
  metered_ =
      ((reinterpret_cast<std::uintptr_t>(type) << 1 | 1) & ~(~Word{0} << detail::kDomainShift)) |
      tag;
  forks_before_ = counts.inline_forks.read();
  metered_since_ns_ = now_ns();
}

void Worker::end_metering() {
  const std::uint64_t forks = counts.inline_forks.read() - forks_before_;
  meter_.add(std::exchange(metered_, 0), 1 + forks,
             static_cast<std::uint64_t>(now_ns() - metered_since_ns_));
}

namespace {

struct Yielding : After {
  Worker* worker;  // a yield switches stacks, not threads
  Word word;
};

}  // namespace

// Most often another task has yielded before, both may run anywhere, and nobody profiles: then this
// is a change of stacks and of places in the queue.
void Worker::yield() {
  recorder_->yielded();
  const std::uint64_t turn = counts.yields.read();
  const bool others_turn =
      turn % kFairness == 0 || (turn % kFreshTurn == 0 && !deque.looks_empty());
  if (tag != 0 || others_turn || !recorder_->quiet()) return yield_with_care(0);
  const Word next = yielded_.pop();
  if (next == 0 || detail::tag_of(next) != 0) return yield_with_care(next);

  detail::TaskContext* const own = context;
  Fiber& self = *fiber_;
  fiber_ = static_cast<Fiber*>(detail::pointer_of(next));
  recorder_->switched();
  void* const yielded = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(&self) | kYielded);
  if (void* const passed = switch_fiber(self, *fiber_, *exceptions_, yielded)) arrived(passed);
  Worker* const now = here();
  now->tag = 0;
  now->context = own;
  if (now != this) now->recorder_->migrated_from(rank);
}

// `next`: what was taken from the yielded tasks already, or 0.
void Worker::yield_with_care(Word next) {
  Yielding yielding{{[](After* after) {
                      const auto& it = *static_cast<Yielding*>(after);
                      it.worker->keep_yielded(it.word);
                    }},
                    this,
                    detail::word_of(fiber_, detail::WordKind::fiber, tag)};
  next = take_mine(next);
  const std::uint64_t turn = counts.yields.read();
  if (next == 0 && turn % kFairness == 0) {
    const Belongings belongings = leave();
    switch_to_loop(&yielding);
    return here()->take_up(belongings);
  }
  if (next == 0 && turn % kFreshTurn == 0) next = take_mine(deque.pop());
  if (next == 0) next = take_mine(yielded_.pop());
  if (next == 0) next = take_mine(deque.pop());
  if (next == 0) return;
  const Belongings belongings = leave();
  if (detail::kind_of(next) == detail::WordKind::fiber) {
    switch_to(*static_cast<Fiber*>(detail::pointer_of(next)), &yielding);
  } else {
    switch_to_loop_with(next, &yielding);
  }
  here()->take_up(belongings);
}

void Worker::keep_yielded(Word word) {
  if (take_mine(word) == 0) return;
  yielded_.push(word);
  // Others may take it while this worker is busy.
  detail::published(this, detail::tag_of(word));
}

void Worker::wake_for_published(Word tag) {
  if (tag == 0) {
    count_woken(team.parking.wake_one(victims_.workers));
    return;
  }
  Domain& domain = team.domains.of(tag);
  if (!domain.has_sleepers()) return;
  count_woken(team.parking.notify_allowed(victims_.workers,
                                          [&](int other) { return domain.allows(other); }));
}

void Worker::make_ready(Word word) {
  if (team.domains.allows(word, rank)) {
    deque.push(word);
    detail::published(this, detail::tag_of(word));
  } else {
    team.inject(word);
  }
}

}  // namespace atl::runtime
