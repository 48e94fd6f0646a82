#include "parking.hpp"

namespace atl::runtime {

namespace {

using detail::kSearcher;
using detail::kSleeper;

}  // namespace

Parking::Parking(int workers, int chiplets)
    : workers_(workers),
      chiplets_(chiplets),
      sleeper_(std::make_unique<Sleeper[]>(static_cast<std::size_t>(workers))),
      chiplet_(std::make_unique<Chiplet[]>(static_cast<std::size_t>(chiplets))),
      chiplet_of_(static_cast<std::size_t>(workers)) {
  choose_fences();
}

// The counts change only by read-modify-write, so each thread that changes them is ordered with the
// ones before it; through acq_rel, what a searcher has uncovered (by taking the word on top of a
// deque) is visible in the second look of a worker that sleeps after it.

// Adds to the counts of the worker's chiplet, which is the caller or was claimed by it, and gives
// the word of all after that.
//
// Where one of the chiplet's counts leaves 0, the word of all is raised before [chiplet-raise]. A
// thread that then finds the count at another value takes the raise back: either count it with the
// others, or it tries again. Until its own change, a thread that has raised for a search is a
// searcher in the eyes of producers, and rightly so: it has not looked anywhere yet. Where a count
// comes to 0, the word is lowered after [chiplet-lower]. So no change from searcher to sleeper, or
// back, shows neither. Counts in the word may be too high for a moment, never too low.
std::uint64_t Parking::change(int worker, std::uint64_t more) {
  const auto shows = [](std::uint64_t counts) {
    return (counts >= kSleeper ? kSleeper : 0) +
           (static_cast<std::uint32_t>(counts) != 0 ? kSearcher : 0);
  };
  std::atomic<std::uint64_t>& chiplet = chiplet_[chiplet_of(worker)].word;
  std::uint64_t before = chiplet.load(std::memory_order_relaxed);
  std::uint64_t raised = 0;
  for (;;) {
    const std::uint64_t after = before + more;
    const std::uint64_t raise = shows(after) & ~shows(before);
    if (raise != raised) {
      word_.fetch_add(raise - raised, std::memory_order_acq_rel);  // [chiplet-raise]
      raised = raise;
    }
    if (chiplet.compare_exchange_weak(before, after, std::memory_order_acq_rel,
                                      std::memory_order_relaxed)) {  // [chiplet-count]
      const std::uint64_t lower = shows(before) & ~shows(after);
      // The fence: who becomes busy here while a worker's place is given back sees that worker's
      // count, or is seen awake (all_asleep).
      if (lower == 0) {
        fence_after_locked();
        return word_.load(std::memory_order_relaxed);
      }
      return word_.fetch_sub(lower, std::memory_order_acq_rel) - lower;  // [chiplet-lower]
    }
  }
}

void Parking::start_search(int worker, int chiplet) {
  if (chiplet_of(worker) != chiplet) {
    chiplet_of_[static_cast<std::size_t>(worker)].store(chiplet, std::memory_order_relaxed);
    moves_.fetch_add(1, std::memory_order_relaxed);  // before the count, which releases: all_asleep
  }
  change(worker, kSearcher);
}

void Parking::prepare(int worker) {
  change(worker, kSleeper - kSearcher);  // [sleeper-count]
  // After the count: every sleeper is counted, so the count cannot fall below zero. Release: the
  // chiplet in which it is counted.
  sleeper_[worker].word.store(asleep, std::memory_order_release);  // [sleeper-state]
  heavy_fence();                                                   // [sleeper-fence]
}

void Parking::cancel(int worker) {
  if (!withdraw(worker)) await_notified(sleeper_[worker]);
}

void Parking::commit(int worker) {
  Sleeper& sleeper = sleeper_[worker];
  std::uint32_t state = asleep;
  // Release: the worker, to a thread that takes its place.
  sleeper.word.compare_exchange_strong(state, parked, std::memory_order_release,
                                       std::memory_order_relaxed);  // [sleeper-parks]
  await_notified(sleeper);
}

// The worker itself, from asleep: it is a searcher again, unless a waker was faster.
bool Parking::withdraw(int worker) {
  std::uint32_t state = asleep;
  // Relaxed: this decides only who changes the counts.
  if (!sleeper_[worker].word.compare_exchange_strong(state, awake, std::memory_order_relaxed)) {
    return false;
  }
  change(worker, kSearcher - kSleeper);
  return true;
}

void Parking::await_notified(Sleeper& sleeper) {
  std::uint32_t state;
  // Acquire: what the waker published before it.
  while ((state = sleeper.word.load(std::memory_order_acquire)) != notified) {
    futex_wait(sleeper.word, state);
  }
  sleeper.word.store(awake, std::memory_order_relaxed);
  if (const int woken = sleeper.wake_others()) {  // [woken-wakes]
    futex_wakes_.fetch_add(static_cast<std::uint64_t>(woken), std::memory_order_relaxed);
  }
}

// Finding nobody is not an error: a counted sleeper was claimed by another thread, or withdrew, or
// has not stored its state yet; all of them check the queues after that.
int Parking::wake_one(std::span<const int> nearest_first, Wave& wave) {
  return wake_first(nearest_first, [](int) { return true; }, wave);
}

// A sleeper that is claimed cannot run. It is a searcher from here on. One whose second look
// another thread takes is notified by that thread.
Parking::Claim Parking::claim(int worker) {
  std::atomic<std::uint32_t>& state = sleeper_[worker].word;
  // The load spares workers that are awake the write to their line.
  std::uint32_t found = state.load(std::memory_order_relaxed);
  while (found == asleep || found == parked || found == leaving) {
    const State to = found == leaving ? called : claimed;
    if (!state.compare_exchange_weak(found, to, std::memory_order_acquire,
                                     std::memory_order_relaxed)) {  // [claim]
      continue;
    }
    if (to == called) return Claim::called;
    // Before the worker can run, or it could end a search that was not counted yet.
    change(worker, kSearcher - kSleeper);  // [waker-count]
    return Claim::mine;
  }
  return Claim::none;
}

bool Parking::Wave::add(int worker) {
  const Claim claimed = parking_.claim(worker);
  if (claimed == Claim::mine) tree_.add(parking_.sleeper_[worker]);
  return claimed != Claim::none;
}

void Parking::Wave::let_run() {
  if (tree_.empty()) return;
  parking_.futex_wakes_.fetch_add(1, std::memory_order_relaxed);
  tree_.let_run(notified);  // [waker-state]
}

void Parking::let_run(int worker) {
  Wave alone(*this);
  alone.tree_.add(sleeper_[worker]);
}

// Only a worker that has committed: before that its thread still looks at its own queues. A
// producer may still take it for a sleeper and find nobody; the second look of its return finds the
// work.
bool Parking::borrow_from(int worker) {
  std::atomic<std::uint32_t>& state = sleeper_[worker].word;
  std::uint32_t expected = parked;
  // Acquire: all that is the worker's.
  if (state.load(std::memory_order_relaxed) != parked ||
      !state.compare_exchange_strong(expected, borrowed, std::memory_order_acquire,
                                     std::memory_order_relaxed)) {  // [borrow]
    return false;
  }
  change(worker, 0 - kSleeper);  // [borrow-count]
  return true;
}

int Parking::borrow(int chiplet) {
  Wave::Cursor first;
  return first_near(chiplet, first, [this](int worker) { return borrow_from(worker); });
}

bool Parking::begin_return(int worker, Kind kind) {
  change(worker, kind == Kind::searcher ? kSleeper - kSearcher : kSleeper);  // [return-count]
  // Before the fence, as in prepare: a producer that the look misses finds the worker here.
  sleeper_[worker].word.store(leaving, std::memory_order_release);  // [return-state]
  detail::full_fence();
  if (all_asleep(workers_)) return true;
  heavy_fence();  // [return-fence]
  return false;
}

bool Parking::end_return(int worker) {
  std::uint32_t state = leaving;
  // Release: the worker, to its own thread and to the next one in its place.
  if (sleeper_[worker].word.compare_exchange_strong(state, parked, std::memory_order_release,
                                                    std::memory_order_relaxed)) {  // [return-parks]
    return true;
  }
  end_return_awake(worker);
  return false;
}

void Parking::end_return_awake(int worker) {
  change(worker, kSearcher - kSleeper);
  let_run(worker);
}

void Parking::return_awake(int worker, Kind kind) {
  if (kind == Kind::busy) change(worker, kSearcher);
  let_run(worker);
}

// Whether this number of workers, all or all but the caller, were asleep, each when its chiplet was
// read. Then none of a worker's words was waiting, and what it publishes later comes after a change
// of its chiplet's word with a full fence, by which it sees what the caller stored before. A
// searcher is not enough: it offers the words of a batch that it has stolen before it ends its
// search. A worker that moves meanwhile could count twice.
bool Parking::all_asleep(int workers) const {
  const std::uint64_t moves = moves_.load(std::memory_order_acquire);
  std::uint64_t asleep = 0;
  for (int chiplet = 0; chiplet < chiplets_; ++chiplet) {
    const std::uint64_t counts = chiplet_[chiplet].word.load(std::memory_order_acquire);
    asleep += counts >> 32;
  }
  return asleep == static_cast<std::uint64_t>(workers) &&
         moves_.load(std::memory_order_relaxed) == moves;
}

void Parking::notify_all() {
  detail::full_fence();
  Wave wave(*this);
  for (int worker = 0; worker < workers_; ++worker) wave.add(worker);
}

int Parking::sleepers() const {
  std::uint64_t count = 0;
  for (int chiplet = 0; chiplet < chiplets_; ++chiplet) {
    count += chiplet_[chiplet].word.load(std::memory_order_relaxed) >> 32;
  }
  return static_cast<int>(count);
}

int Parking::committed() const {
  int count = 0;
  for (int worker = 0; worker < workers_; ++worker) {
    count += sleeper_[worker].word.load(std::memory_order_relaxed) == parked ? 1 : 0;
  }
  return count;
}

int Parking::searchers() const {
  std::uint64_t count = 0;
  for (int chiplet = 0; chiplet < chiplets_; ++chiplet) {
    count += chiplet_[chiplet].word.load(std::memory_order_relaxed) & 0xffffffff;
  }
  return static_cast<int>(count);
}

}  // namespace atl::runtime
