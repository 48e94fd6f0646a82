// The profiler's part of one worker: the hooks that the scheduler calls, and the counts of its code
// sections. Only the worker's own thread calls this, unless a comment allows others.
//
// A hook is an increment of an own counter (worker_counts.hpp) and, for the trace, one branch that
// is never taken without a trace. Sections cost nothing while none is open: one branch at a switch.
// While one is open, each change adds the worker's counters, minus their values when the section
// continued, to it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "atoll/runtime/profile.hpp"
#include "clock.hpp"
#include "fill_span.hpp"
#include "section_names.hpp"
#include "trace_ring.hpp"

namespace atl::runtime {

// A worker's counts of one section. Only the worker writes; any thread may read.
struct SectionBook : FillBook {
  detail::OwnCount entered;
  detail::OwnCount ns;
  WorkerCounts counts;
};

// A worker's fills in tasks of one type, of those that were counted. Likewise.
struct TypeBook : FillBook {
  // The function that runs tasks of the type; kNoType: the book is not in use.
  static constexpr std::uintptr_t kNoType = 0;
  std::atomic<std::uintptr_t> type{kNoType};
};
// Not functions: tasks that continue, whose type nobody has noted, and types for which there was no
// book left.
inline constexpr std::uintptr_t kResumedType = 1;
inline constexpr std::uintptr_t kOtherTypes = 2;

class Recorder {
 public:
  // `trace` may be null: no trace. `origin_ns`: the trace's time 0.
  Recorder(WorkerCounts& counts, TraceRing* trace, std::int64_t origin_ns)
      : counts_(&counts), trace_(trace), origin_ns_(origin_ns) {}
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;
  ~Recorder();

  // The recorder of this thread, for Section: null on threads that are not workers. Never inlined,
  // so that no compiler keeps the thread's address across a switch.
  [[gnu::noinline]] static Recorder* current() noexcept;
  static void set_current(Recorder* recorder) noexcept;

  // The scheduler's hooks -------------------------------------------------------------------------

  // Around what the loop runs: a new job, or a suspended task that continues (`resumed`). Not for
  // jobs that a join calls inline; they count in WorkerCounts::inline_forks only.
  void job_begin(bool resumed) noexcept {
    if (!resumed) counts_->tasks.add();
    trace(TraceKind::job_begin, resumed ? 1 : 0);
  }
  void job_end() noexcept { trace(TraceKind::job_end, 0); }
  void stole(int victim, Distance distance) noexcept {
    counts_->steals[static_cast<std::size_t>(distance)].add();
    trace(TraceKind::steal,
          static_cast<std::uint64_t>(victim) << 8 | static_cast<std::uint64_t>(distance));
  }
  void found_nothing() noexcept { counts_->failed_rounds.add(); }
  void parking() noexcept {
    counts_->parks.add();
    trace(TraceKind::park, 0);
  }
  void unparked() noexcept { trace(TraceKind::unpark, 0); }
  // Another thread was in the worker's place; its own thread never woke.
  void parked_again() noexcept { trace(TraceKind::park, 0); }
  void woke(int worker) noexcept {
    counts_->wakes.add();
    trace(TraceKind::wake, static_cast<std::uint64_t>(worker));
  }
  void migrated_from(int worker) noexcept {
    counts_->migrations.add();
    trace(TraceKind::migration, static_cast<std::uint64_t>(worker));
  }
  void switched() noexcept { counts_->switches.add(); }
  void yielded() noexcept { counts_->yields.add(); }
  void moved_to(int core) noexcept {
    counts_->moves.add();
    trace(TraceKind::move, static_cast<std::uint64_t>(core));
  }

  // Call it before a task is suspended, keep the result with the task, and pass it back before the
  // task continues, to the recorder of the worker that then runs it.
  [[nodiscard]] Section* section_suspended() noexcept {
    Section* const open = open_;
    if (open != nullptr) [[unlikely]]
      suspend_sections();
    return open;
  }
  void section_resumed(Section* section) noexcept {
    if (section != nullptr) [[unlikely]]
      resume_sections(section);
  }

  // One task may follow another as if it were the same: without a trace, and both in a section of
  // the same name or in none. Then `section_follows` is all.
  [[nodiscard]] bool traces() const noexcept { return trace_ != nullptr; }
  [[nodiscard]] Section* section() const noexcept { return open_; }
  [[nodiscard]] bool may_follow(const Section* section) const noexcept {
    return open_ == section ||
           (open_ != nullptr && section != nullptr && open_->name() == section->name());
  }
  void section_follows(Section* section) noexcept { open_ = section; }

  // Around what the loop runs, while work is metered (meter.hpp). `type`: the function that runs
  // it, or kResumedType.
  void type_begins(std::uintptr_t type, std::int64_t now) noexcept {
    if (fills_ == nullptr || !type_fills_.due(now)) [[likely]]
      return;
    running_type_ = type;
    type_fills_.start(*fills_, now);
  }
  void type_ends(std::int64_t now) noexcept {
    if (type_fills_.counts()) [[unlikely]]
      type_fills_.book(*fills_, *table_, now, type_book(running_type_));
  }

  // For Section and Profiler ----------------------------------------------------------------------

  // Returns the section that was open until now, or null.
  Section* begin(Section& section);
  void end(Section& section);
  // Null to stop. `fills` and `table` must stay until then.
  void set_fills(const CounterReader* fills, const FillTable* table) noexcept;
  // Other fills from now on, or none; returns those until now. Not while a section is open.
  const CounterReader* exchange_fills(const CounterReader* fills) noexcept {
    return std::exchange(fills_, fills);
  }
  // Any thread. Null if this worker was never in that section.
  [[nodiscard]] const SectionBook* book(int id) const noexcept {
    return books_[static_cast<std::size_t>(id)].load(std::memory_order_acquire);
  }
  // Any thread. Those in use have a type.
  [[nodiscard]] const auto& type_books() const noexcept { return type_books_; }

 private:
  struct Known {
    const char* name = nullptr;
    int id = 0;
  };

  void trace(TraceKind kind, std::uint64_t value) noexcept {
    if (trace_ != nullptr) [[unlikely]]
      put(kind, value);
  }
  // Not inlined, so that hooks without a trace cost their callers no registers.
  [[gnu::noinline, gnu::cold]] void put(TraceKind kind, std::uint64_t value) noexcept {
    trace_->put(kind, value, now_ns() - origin_ns_);
  }
  void suspend_sections() noexcept;
  void resume_sections(Section* section) noexcept;
  void trace_outermost_first(const Section* section, std::int64_t now);
  void trace_ends(const Section* section, std::int64_t now) noexcept;
  int id_of(const char* name);
  SectionBook& book_of(int id);
  void start_span(const Section& section, std::int64_t now);
  void book_span(std::int64_t now) noexcept;
  TypeBook& type_book(std::uintptr_t type) noexcept;

  WorkerCounts* counts_;
  TraceRing* trace_;
  std::int64_t origin_ns_;

  Section* open_ = nullptr;  // the innermost of the task that runs now
  // The span: since when the innermost section has been running here.
  SectionBook* span_book_ = nullptr;
  std::int64_t span_begin_ns_ = 0;
  Counts span_counts_;

  const CounterReader* fills_ = nullptr;
  const FillTable* table_ = nullptr;
  FillSpan span_fills_;
  FillSpan type_fills_;
  std::uintptr_t running_type_ = TypeBook::kNoType;  // while type_fills_ counts

  std::array<Known, 64> known_;  // by a hash of the name's address
  std::array<std::atomic<SectionBook*>, kMaxSections> books_{};
  std::array<TypeBook, 64> type_books_;
};

}  // namespace atl::runtime
