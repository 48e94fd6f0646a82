// A trace in Chrome's JSON trace-event format, which ui.perfetto.dev and chrome://tracing open:
// a track for each worker with its jobs, sections and parks as slices, steals, migrations and moves
// as instants, an arrow from the victim to the thief, and counters over time.
//
// The format: "Trace Event Format", Google, by N. Duca and D. Sinclair. Times are microseconds with
// three decimals. Slices whose beginning the ring has lost are omitted.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "atoll/runtime/profile.hpp"
#include "json_writer.hpp"
#include "trace_ring.hpp"

namespace atl::runtime {

struct WorkerTrace {
  int worker = 0;
  std::vector<TraceEvent> events;  // oldest first
  std::uint64_t lost = 0;
};

// A worker's counters at one time, since its start.
struct CounterSample {
  std::int64_t at_ns = 0;
  int worker = 0;
  Counts counts;
  FillCounts fills;
};

// `samples` in the order of time. Counters are drawn as rates from each sample of a worker to its
// next; `fills`: the name of these.
void write_trace_json(JsonWriter& json, int pid, const std::vector<WorkerTrace>& workers,
                      const std::vector<CounterSample>& samples, std::string_view fills = "fills");

}  // namespace atl::runtime
