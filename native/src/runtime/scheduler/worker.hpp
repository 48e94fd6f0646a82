// A worker: an OS thread on a core that runs tasks from its deque.
//
// Its loop runs on a fiber. A new task is called right there; if it suspends, it keeps the fiber
// with the loop's frame, and the worker continues the loop on another fiber. When the task ends, it
// returns into that old loop frame, on whichever worker it then is. So a loop frame belongs to no
// worker, and everything in it finds its worker again after each call.
//
// Order in which a worker looks for work
//   1. an urgent task, then what was bound to it (its own domain), the task that goes next, its
//      deque, its yielded tasks. Every kFairness-th time is a fair turn, so that nothing starves
//      (fair_work)
//   2. the queues of the domains that it serves
//   3. the others' deques and yielded tasks, ring by ring, nearest first; random within a ring;
//      far ones once it pays (far_work.hpp)
//   4. sleep
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "atoll/runtime/detail/suspend.hpp"
#include "atoll/runtime/detail/worker.hpp"
#include "atoll/runtime/victims.hpp"
#include "meter.hpp"
#include "profiler/recorder.hpp"
#include "stacks/fiber.hpp"
#include "team.hpp"
#include "yield_queue.hpp"

namespace atl::runtime {

// An action on the new stack right after a switch, on behalf of the old one. It is on the old
// stack, so `run` must not use it once the old stack may continue.
struct After {
  void (*run)(After* after) noexcept;
};

class alignas(128) Worker : public detail::WorkerHead {
 public:
  Worker(Team& team, int rank);
  ~Worker();

  // The thread's whole life.
  static void main(Team& team, int rank);
  static Worker* here() { return static_cast<Worker*>(detail::this_worker()); }

  Team& team;
  const int rank;

  // A thread that is no worker stands in for this one, whose own thread is parked: it runs the job,
  // which nobody has yet, and what it leads to, until `end` is done or there is nothing more that
  // it may run. Then the worker sleeps on, or its own thread wakes for what is left.
  void stand_in(detail::Job* job, const detail::Completion& end) noexcept;
  // Times that a thread did so.
  std::uint64_t stand_ins() const { return stand_ins_.read(); }
  // Whether this thread, in which the worker runs now, is its own.
  bool on_own_thread() const { return caller_ == nullptr; }

  // After begin_switch(fiber()). Leaves the running fiber for `to`. Inlined, because every call
  // between here and the task is a return that the CPU mispredicts on the other stack, but only
  // into functions that are never inlined into users' code (see fiber.hpp).
  [[gnu::always_inline]] void switch_to(Fiber& to, After* after) {
    Fiber& from = *fiber_;
    fiber_ = &to;
    recorder_->switched();
    if (void* const passed = finish_switch(from, to, *exceptions_, after)) atl_rt_arrived(passed);
  }
  // After begin_switch, as below. Leaves the running task for `next`: directly if that was
  // suspended, else for a loop that begins with it, or, if it is 0, looks for work. Throws
  // RuntimeFault without a stack for a loop; then the task runs on and `next` is ready again.
  [[gnu::always_inline]] void leave_for(Word next, After* after) {
    const bool suspended = next != 0 && detail::kind_of(next) == detail::WordKind::fiber;
    leave_to(suspended ? *static_cast<Fiber*>(detail::pointer_of(next)) : loop_for(next), suspended,
             after);
  }
  // Leaves the running task for the next task of this worker.
  [[gnu::always_inline]] void leave_for_next(After* after) {
    begin_switch(*fiber_);
    const Turn turn = next_turn();
    if (is_for_loop(turn)) [[unlikely]]
      return leave_for_loop(turn, after);
    leave_for(own_next(turn, false), after);
  }

  // Makes `word` ready: in the own deque if it is of the running task's domain, this worker may run
  // it and the deque has room, else in its domain's queue.
  void make_ready(Word word) noexcept;
  // The same for one of many. The worker that is to wake for it does so with the wave.
  void make_ready(Word word, Parking::Wave& wave) noexcept;
  // From here on this worker runs a task of this domain. All words of its deque are of one domain,
  // its task's: thieves look at the oldest only, and one that they may not run would hide others.
  void enter_domain(Word entered) {
    if (entered == tag) return;
    if (!deque.looks_empty() || yielded_.has_next()) hand_over();
    tag = entered;
  }
  // A task with this tag was pushed onto this worker's deque, and a worker searches or sleeps.
  void offer_to_idle(Word tag) {
    Parking::Wave alone(team.parking);
    offer_to_idle(tag, alone);
  }
  // See atl::yield. Never inlined, as switch_to.
  [[gnu::noinline]] void yield();
  // Begins an urgent task if there is one that may run here; the running task queues meanwhile as
  // one that yields.
  void let_urgent_in() {
    if (!team.urgent.empty()) [[unlikely]]
      leave_for_urgent();
  }
  // For the owner of the fiber that runs here.
  Fiber& fiber() const { return *fiber_; }
  int core() const { return core_; }
  const Meter& meter() const { return meter_; }
  // Whether tasks of this worker wait for their turn, as far as it can see without a search.
  bool has_own_work() const {
    return yielded_.has_next() || !deque.looks_empty() || !bound_->queue.looks_empty() ||
           yielded_.size_hint() > 0;
  }
  Recorder& recorder() { return *recorder_; }
  // What a task that suspends leaves with its fiber, for the worker that resumes it.
  struct Note {
    Worker* worker;
    detail::TaskContext* context;
    Word tag;
    Section* section;  // the innermost
  };
  static Note note_of(const Fiber& fiber) {
    return {static_cast<Worker*>(fiber.user[0]), static_cast<detail::TaskContext*>(fiber.user[1]),
            reinterpret_cast<Word>(fiber.user[2]), static_cast<Section*>(fiber.user[3])};
  }

 private:
  static constexpr unsigned kFairness = 64;
  static constexpr unsigned kFreshTurn = 8;
  // Words of one steal: many, because it costs the victim some transfers of cache lines, as much as
  // the work of a hundred small tasks.
  static constexpr std::size_t kMostStolen = 256;
  // Of those that have yielded fewer: their owner waits meanwhile.
  static constexpr std::size_t kMostYielded = 32;

  [[noreturn]] static void loop(void* passed);
  void run(Word word);
  // A fiber with a loop that begins with `word`. Without a stack it throws; `word` is ready again.
  [[gnu::noinline]] Fiber& loop_for(Word word);
  void leave_note(Section* section) {
    Fiber& fiber = *fiber_;
    fiber.user[0] = this;
    fiber.user[1] = context;
    fiber.user[2] = reinterpret_cast<void*>(tag);
    fiber.user[3] = section;
  }
  // This worker is about to switch to a suspended task.
  [[gnu::always_inline]] void take_up(const Fiber& fiber) {
    const Note note = note_of(fiber);
    context = note.context;
    enter_domain(note.tag);
    if (note.worker != this) recorder_->migrated_from(note.worker->rank);
    recorder_->job_begin(true);
    recorder_->section_resumed(note.section);
  }
  // Whether the own queues hold the word from here on.
  bool keep(Word word) noexcept;
  void offer_to_idle(Word tag, Parking::Wave& wave);
  // Moves the words of the own deque to their domain's queue, whose members find them there.
  [[gnu::noinline]] void hand_over() noexcept;

  Word next();  // 0: the team stops, or the stand-in goes
  [[gnu::always_inline]] void retire_for(Fiber& to);
  void give_back();
  // Each time that this worker decides what to run next is a turn, whoever decides: a task that
  // waits or yields, or the loop. Most turns take the newest work. In a fresh one, a task that
  // yields lets new tasks go before those that have yielded; a fair one takes what others would
  // leave waiting for ever (fair_work).
  enum class Turn : std::uint8_t { own, fresh, fair };
  Turn next_turn() {
    const unsigned turn = turn_.load(std::memory_order_relaxed) + 1;
    turn_.store(turn, std::memory_order_relaxed);
    if (turn % kFreshTurn != 0) return Turn::own;
    return turn % kFairness != 0 ? Turn::fresh : Turn::fair;
  }
  [[gnu::noinline]] Word next(Turn turn);
  [[gnu::noinline]] Word next_for_caller(Turn turn);
  // Whether the next task is to begin from the loop, which alone looks at all there is.
  bool is_for_loop(Turn turn) const {
    return turn == Turn::fair || !team.urgent.empty() || !bound_->queue.looks_empty();
  }
  // Decides in a fair turn before the running task is queued, so that a yield is for others.
  [[gnu::noinline]] void leave_for_loop(Turn turn, After* after) {
    leave_to(loop_for(turn == Turn::fair ? fair_work() : 0), false, after);
  }
  [[gnu::always_inline]] void leave_to(Fiber& to, bool suspended, After* after) {
    leave_note(recorder_->section_suspended());
    recorder_->job_end();
    if (suspended) take_up(to);
    switch_to(to, after);
  }
  bool has_new_work() const {
    return yielded_.has_next() || !deque.looks_empty() || !bound_->queue.looks_empty() ||
           !team.urgent.empty();
  }
  // From the own queues, for a task that waits or yields, or for the loop.
  [[gnu::always_inline]] Word own_next(Turn turn, bool yields) {
    const bool yielded_first = yields && turn == Turn::own;
    for (;;) {
      Word word = yielded_first ? yielded_.pop() : 0;
      if (word == 0) word = yielded_.take_next();
      if (word == 0 && !deque.looks_empty()) word = deque.pop();
      if (word == 0 && !yielded_first) word = yielded_.pop();
      if (word == 0 || take_mine(word) != 0) return word;
    }
  }
  Word own_work(Turn turn);
  Word urgent();
  [[gnu::noinline]] void leave_for_urgent();
  Word fair_work();
  Word shared(unsigned from);
  Word from_its_domains();
  Word search();
  void end_search();
  bool leaves_alone(const Worker& victim, Distance distance);
  Word steal_from(Worker& victim, Distance distance, bool force);
  void keep_stolen(std::span<const Word> words, Word of_tag);
  bool queues_offer();
  Word steal_next_from(Worker& victim, Distance distance);
  bool anything_in_sight();
  // A stand-in leaves what is bound to workers, places and groups to the worker's own thread, which
  // sits there.
  bool may_run(Word word) const {
    return detail::tag_of(word) == 0 || (on_own_thread() && team.domains.allows(word, rank));
  }
  // Whether a stand-in is to go: what it waits for has ended, or there is work that the worker's
  // own thread alone may run.
  bool caller_goes() const { return caller_->done() || placed_work_waits(); }
  bool placed_work_waits() const;
  // Sends a word that this worker may no longer run (its group has moved) where it belongs.
  Word take_mine(Word word) {
    return detail::tag_of(word) == 0 || team.domains.allows(word, rank) ? word : send_away(word);
  }
  [[gnu::noinline, gnu::cold]] Word send_away(Word word);
  void sit_down();
  void keep_up() noexcept;
  [[gnu::noinline]] void yield_with_care(Turn turn);
  template <class Leave>
  void leave_as_yielded(Leave&& leave);
  void keep_yielded(Word word);
  void begin_metering(Word word);
  void end_metering();
  void count_woken(int worker) {
    if (worker != Parking::kNobody) recorder_->woke(worker);
  }

  std::uint64_t random();

  Fiber* fiber_ = nullptr;
  ExceptionGlobals* exceptions_ = nullptr;
  Word first_ = 0;         // what the loop begins with
  Fiber* home_ = nullptr;  // the stack of the thread, for its end
  // With a stand-in: what it waits for, and whether it searches. Else null.
  const detail::Completion* caller_ = nullptr;
  bool caller_searches_ = false;
  detail::OwnCount stand_ins_;

  Recorder* recorder_ = nullptr;
  Domain* bound_ = nullptr;  // the queue of what only this worker may run
  Meter meter_;
  std::atomic<unsigned> turn_{0};  // of the owner; thieves read it

  static constexpr std::size_t kSpares = 16;
  std::array<Fiber*, kSpares> spares_{};
  std::size_t spare_count_ = 0;

  YieldQueue yielded_;
  FarWatch far_;
  std::uint64_t random_;
  VictimOrder victims_;
  std::size_t last_domain_ = 0;  // from whose queue it took last
  bool others_first_ = false;
  std::size_t placement_ = 0;
  int core_ = 0;
  int node_ = 0;
  int chiplet_ = 0;
  Fiber thread_fiber_;
};

}  // namespace atl::runtime
