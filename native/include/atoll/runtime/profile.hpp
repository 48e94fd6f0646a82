// What a runtime did, per worker and code section: tasks, steals by distance, sources of cache
// lines, faults and delays. Values only; docs/runtime-profiler.md explains each one.
//
// A value that is unknown here is empty, never 0, and `remarks` has a line that says why and how to
// get it. Counts run from the start of the runtime; take the difference of two profiles for a part
// of a run.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "atoll/runtime/export.hpp"
#include "atoll/runtime/worker_counts.hpp"

namespace atl {

// Where a cache line that a core took into its own caches came from.
enum class FillSource : std::uint8_t {
  local_chiplet,   // the chiplet's L3, or another core's cache below it
  remote_chiplet,  // a cache of another chiplet of the same node
  node_cache,      // the chiplet or another of the node, on a CPU that cannot tell which
  remote_node,     // a cache of another node
  memory_local,
  memory_remote,
};
inline constexpr std::size_t kFillSources = 6;
ATOLL_EXPORT std::string_view fill_source_name(FillSource source);

struct FillCounts {
  std::array<std::optional<std::uint64_t>, kFillSources> by_source;
  // Share of the time that the counters were on. Below 1 the kernel shared them, and the counts are
  // scaled up: estimates. 0: never on, no counts.
  double running_share = 0;

  std::optional<std::uint64_t>& of(FillSource source) {
    return by_source[static_cast<std::size_t>(source)];
  }
  const std::optional<std::uint64_t>& of(FillSource source) const {
    return by_source[static_cast<std::size_t>(source)];
  }
  bool operator==(const FillCounts&) const = default;
};

// What the kernel reports about a worker's thread.
struct ThreadUsage {
  std::optional<double> cpu_s;        // time on a CPU
  std::optional<double> run_delay_s;  // time ready to run while something else ran
  std::optional<std::uint64_t> minor_faults;
  std::optional<std::uint64_t> major_faults;
  std::optional<std::uint64_t> voluntary_switches;
  std::optional<std::uint64_t> involuntary_switches;
  std::optional<std::uint64_t> cpu_migrations;
};

// A code section on one worker, or on all. While sections are nested, only the innermost counts, so
// sections can be added up.
struct SectionProfile {
  std::string name;
  std::uint64_t entered = 0;
  // Wall-clock time, including time lost to other threads, without suspensions and inner sections.
  double seconds = 0;
  Counts counts;
  double fills_s = 0;  // the part of `seconds` in which fills were counted: a sample
  FillCounts fills;    // within `fills_s`
};

// A type of tasks on one worker, of the spans that were counted: a sample of them. Only of runtimes
// that steer something (RuntimeOptions::approach), as only those measure tasks.
struct TypeProfile {
  // The function that runs them, as `program+0x1a2b` for addr2line; `(resumed)`: tasks that
  // continued after a wait, of any type; `(others)`: more than 63 types.
  std::string type;
  double fills_s = 0;
  FillCounts fills;  // within `fills_s`
};

struct WorkerProfile {
  int worker = 0;
  int tid = 0;  // the kernel's id of its thread; 0: it never ran
  Counts counts;
  FillCounts fills;
  ThreadUsage usage;
  std::vector<SectionProfile> sections;  // by name
  std::vector<TypeProfile> types;        // by type
  std::uint64_t lost_trace_events = 0;   // the oldest, overwritten
};

// What resctrl reports about one L3, for the process's own monitoring group.
struct L3Profile {
  int l3 = 0;                                    // resctrl's number of the domain
  std::optional<std::uint64_t> occupancy_bytes;  // now
  std::optional<std::uint64_t> memory_bytes;     // moved to and from memory since the start
  std::optional<std::uint64_t> local_memory_bytes;
};

struct Profile {
  double seconds = 0;        // since the runtime started
  std::string cpu;           // whose event encodings were used; empty: none
  std::string fills_of;      // what counts as a fill on this CPU: 'lines filled into L1D'
  std::string fills_source;  // 'hardware' or 'simulated' (docs/simulated.md); empty: none counted
  std::vector<WorkerProfile> workers;
  std::vector<L3Profile> l3;
  // Of all workers together, as RuntimeOptions has it or as last measured; measured only for an
  // approach that goes by it. The source, as by working_set_source_name; empty: not known.
  std::optional<std::uint64_t> working_set_bytes;
  std::string working_set_source;
  std::vector<std::string> remarks;  // what is missing or incomplete, and why: one line each
};

// The sections of all workers, added up; by name.
ATOLL_EXPORT std::vector<SectionProfile> section_totals(const Profile& profile);

// The JSON of `atoll/runtime-profile` 1 (src/atoll/schema/runtime_profile.py).
ATOLL_EXPORT std::string profile_json(const Profile& profile);

// Writes the whole file or nothing: a temporary file in the same folder, fsync, rename. Throws
// RuntimeFault if that fails.
ATOLL_EXPORT void write_profile_json(const Profile& profile, const std::string& path);

// The name of a section: a string literal, so that its address can identify it.
class SectionName {
 public:
  // Not explicit: `Section section("probe phase")`.
  consteval SectionName(const char* text) : text_(text) {}
  [[nodiscard]] const char* text() const noexcept { return text_; }

 private:
  const char* text_;
};

// Counts what the calling task's stack does until the end of the block under a named section:
//
//   atl::Section section("probe phase");
//
// While suspended it counts nothing; resumed on another worker it continues there. It includes
// forks that the task runs itself, not those that others steal: open the section in the body of a
// parallel_for, not around it. Sections with the same name are one section, up to 255 names in a
// process; further names count as '(others)'. Sections must end on the stack where they began, in
// reverse order, as objects in blocks do. Outside of a task a section does nothing.
class ATOLL_EXPORT Section {
 public:
  explicit Section(SectionName name);
  Section(const Section&) = delete;
  Section& operator=(const Section&) = delete;
  ~Section();

  // For the profiler.
  [[nodiscard]] Section* outer() const noexcept { return outer_; }
  [[nodiscard]] const char* name() const noexcept { return name_; }

 private:
  Section* outer_ = nullptr;
  const char* name_;
  bool counted_ = false;
};

}  // namespace atl
