#include "atoll/runtime/barrier.hpp"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <span>
#include <string>
#include <thread>

#include "scheduler/worker.hpp"
#include "spin.hpp"
#include "suspension.hpp"
#include "wait_on.hpp"

namespace atl {

namespace {

// Number of parties that share a leaf: about the cores of a chiplet. With up to two chiplets'
// worth, one line is as good as a tree.
constexpr std::uint32_t kPartiesPerLeaf = 8;
constexpr std::ptrdiff_t kFewParties = 16;
constexpr std::ptrdiff_t kMostParties = (std::ptrdiff_t{1} << 30) - 1;  // tickets wrap at 2^31
// The parties use one line one after the other, so a phase of many takes longer. To be suspended
// and woken takes longer still: 29 us for 16 parties in a virtual machine.
constexpr std::chrono::nanoseconds kSpin{2'000};
constexpr std::chrono::nanoseconds kSpinPerParty{500};
constexpr std::chrono::nanoseconds kMostSpin{20'000};
constexpr int kSpinsPerLook = 8;  // at what else the worker could do, and at the clock

// Whether a word that counts passed tickets has passed this one. Both wrap.
bool is_past(std::uint32_t word, std::uint32_t ticket) {
  return static_cast<std::int32_t>((word & ~std::uint32_t{1}) - ticket) > 0;
}

// Neighbours share a leaf: cores are numbered chiplet by chiplet. The CPU of a thread that is not a
// worker is a guess.
std::uint32_t neighbourhood_of_caller() {
  const runtime::Worker* const worker = runtime::Worker::here();
  const int core = worker != nullptr ? worker->core() : std::max(sched_getcpu(), 0);
  return static_cast<std::uint32_t>(core) / kPartiesPerLeaf;
}

bool has_other_work() {
  const runtime::Worker* const worker = runtime::Worker::here();
  return worker != nullptr && worker->has_own_work();
}

// Waits until `word` is past `ticket`, for which `missing` other parties have to arrive.
void await(std::atomic<std::uint32_t>& word, std::uint32_t ticket, std::uint32_t missing) {
  constexpr std::uint32_t kWaited = 1;
  std::uint32_t now = word.load(std::memory_order_acquire);
  if (missing <= static_cast<std::uint32_t>(runtime::others_running())) {
    using Clock = std::chrono::steady_clock;
    Clock::time_point end;
    for (int spin = 0; !is_past(now, ticket); ++spin) {
      if (spin % kSpinsPerLook == 0) {
        // Missing parties may be among this worker's own tasks.
        if (has_other_work()) break;
        if (spin == kSpinsPerLook) {  // not before: two parties meet sooner than a clock is read
          end = Clock::now() + std::min(kSpin + missing * kSpinPerParty, kMostSpin);
        } else if (spin > 0 && Clock::now() > end) {
          break;
        }
      }
      runtime::pause();
      now = word.load(std::memory_order_acquire);
    }
  }
  while (!is_past(now, ticket)) {
    if ((now & kWaited) == 0 &&
        !word.compare_exchange_weak(now, now | kWaited, std::memory_order_acquire)) {
      continue;
    }
    runtime::wait_on(word, now | kWaited);
    now = word.load(std::memory_order_acquire);
  }
}

}  // namespace

struct alignas(128) Barrier::Leaf {
  static constexpr std::uint64_t kArrival = std::uint64_t{kOne} << 32 | 1;

  // The upper half counts tickets, the lower one those that nobody has brought to the root yet. The
  // party that takes it from 0 brings, alone, until it is 0 again.
  std::atomic<std::uint64_t> arrivals{0};
  std::atomic<std::uint32_t> brought{0};  // tickets, by the party that brings
  std::uint32_t until = 0;                // by the last party of a phase: what that lets through
  // Its own lines: its parties spin here while others arrive.
  alignas(128) std::atomic<std::uint32_t> passed{0};
};

Barrier::Barrier(std::ptrdiff_t parties, std::function<void()> completion)
    : all_(static_cast<std::uint32_t>(parties) * kOne), completion_(std::move(completion)) {
  if (parties < 1 || parties > kMostParties) {
    throw RuntimeFault("a Barrier of " + std::to_string(parties) + " parties: give 1 to 2^30 - 1");
  }
  if (parties <= kFewParties) return;
  leaf_count_ = (static_cast<std::uint32_t>(parties) + kPartiesPerLeaf - 1) / kPartiesPerLeaf;
  leaves_ = std::make_unique<Leaf[]>(leaf_count_);
}

Barrier::~Barrier() = default;

void Barrier::wait(std::uint32_t ticket) {
  // At once, unless more than `parties` are on their way: then for the phase before its own.
  await(passed_, ticket - all_, 0);
  const std::uint32_t passed = passed_.load(std::memory_order_acquire) & ~kWaited;
  const std::uint32_t missing = passed + all_ - ticket - kOne;
  if (missing == 0) return end_phase(passed);
  await(passed_, ticket, missing / kOne);
}

void Barrier::arrive_in_tree() {
  Leaf& leaf = leaves_[neighbourhood_of_caller() % leaf_count_];
  const std::uint64_t before =
      leaf.arrivals.fetch_add(Leaf::kArrival, std::memory_order_acq_rel);  // [leaf-arrive]
  if (static_cast<std::uint32_t>(before) == 0) bring(leaf);
  await(leaf.passed, static_cast<std::uint32_t>(before >> 32), all_ / kOne - 1);  // [leaf-wait]
}

// While it brings some, others arrive at the leaf, which it brings next. It ends at the latest when
// the parties of the leaf wait for a phase that it has not arrived for again.
void Barrier::bring(Leaf& leaf) {
  std::uint32_t waiting = 1;
  do {
    const std::uint32_t brought = admit(leaf, waiting);
    const std::uint64_t before =
        leaf.arrivals.fetch_sub(brought, std::memory_order_acq_rel);  // [bring-rest]
    waiting = static_cast<std::uint32_t>(before) - brought;
  } while (waiting > 0);
}

// Brings at least one and at most `most` arrivals of the leaf to the root; returns how many. A
// phase takes no more than its parties; the rest waits until the phase has ended.
std::uint32_t Barrier::admit(Leaf& leaf, std::uint32_t most) {
  const std::uint32_t before = leaf.brought.load(std::memory_order_relaxed);
  for (;;) {
    const std::uint32_t passed =
        passed_.load(std::memory_order_acquire) & ~kWaited;  // [admit-room]
    std::uint32_t arrived = arrived_.load(std::memory_order_acquire);
    // Below 0 if the phase has ended between the two loads.
    const auto room = static_cast<std::int32_t>(passed + all_ - arrived);
    if (room <= 0) {
      await(passed_, passed, 0);
      continue;
    }
    const std::uint32_t tickets = std::min(most * kOne, static_cast<std::uint32_t>(room));
    // Before the root, so that the last party of the phase finds them in the leaf.
    leaf.brought.store(before + tickets, std::memory_order_relaxed);  // [admit-show]
    if (arrived_.compare_exchange_strong(arrived, arrived + tickets,
                                         std::memory_order_acq_rel)) {  // [admit-take]
      if (tickets == static_cast<std::uint32_t>(room)) end_phase_in_tree();
      return tickets / kOne;
    }
    leaf.brought.store(before, std::memory_order_relaxed);  // [admit-back]
  }
}

// native/models/barrier.pml models the tree; both use the same labels, such as [leaf-arrive].
//
// By the party that filled the phase, until it moves `passed_`: only then is there room for another
// phase. First it looks what each leaf has brought, because a party that is let through may arrive
// again at once, at another leaf.
void Barrier::end_phase_in_tree() {
  const std::span<Leaf> leaves(leaves_.get(), leaf_count_);
  for (;;) {
    std::uint32_t tickets = 0;
    for (Leaf& leaf : leaves) {
      leaf.until = leaf.brought.load(std::memory_order_acquire);  // [phase-look]
      tickets += leaf.until - (leaf.passed.load(std::memory_order_relaxed) & ~kWaited);
    }
    // No leaf shows fewer than it has brought. One that shows more has tried to bring some that the
    // phase has no room for, and takes them back.
    if (tickets == all_) break;
    std::this_thread::yield();
  }
  if (completion_) complete();
  runtime::Resumptions resumed;
  for (Leaf& leaf : leaves) {
    if (leaf.until == (leaf.passed.load(std::memory_order_relaxed) & ~kWaited)) continue;
    const std::uint32_t before =
        leaf.passed.exchange(leaf.until, std::memory_order_acq_rel);  // [leaf-pass]
    if ((before & kWaited) != 0) runtime::wake_all(&leaf.passed, resumed);
  }
  let_through(passed_.load(std::memory_order_relaxed) & ~kWaited);  // [root-pass]
}

void Barrier::complete() noexcept { completion_(); }

void Barrier::wake(const std::atomic<std::uint32_t>& passed) { runtime::wake_all(&passed); }

}  // namespace atl
