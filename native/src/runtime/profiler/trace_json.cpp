#include "trace_json.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string>

#include "section_names.hpp"

namespace atl::runtime {

namespace {

constexpr std::array<std::string_view, kDistances> kDistanceNames = {"chiplet", "near", "node",
                                                                     "elsewhere"};

enum class Slice { job, section, park };

class Writer {
 public:
  Writer(JsonWriter& json, int pid, std::string_view fills)
      : json_(json), pid_(pid), fills_(std::string(fills) + " per s") {}

  void name_worker(const WorkerTrace& trace) {
    metadata("thread_name", trace.worker);
    json_.field("name", "worker " + std::to_string(trace.worker));
    json_.close_object();
    json_.close_object();
    metadata("thread_sort_index", trace.worker);
    json_.field("sort_index", trace.worker);
    json_.close_object();
    json_.close_object();
  }

  void events(const WorkerTrace& trace) {
    std::vector<Slice> open;
    std::int64_t last_ns = 0;
    for (const TraceEvent& event : trace.events) {
      last_ns = event.at_ns;
      write(trace.worker, event, open);
    }
    while (!open.empty()) end(trace.worker, open.back(), last_ns, open);
    if (trace.lost > 0) {
      begin_event("events lost before this", "i", trace.worker,
                  trace.events.empty() ? 0 : trace.events.front().at_ns);
      instant_with("events", trace.lost);
    }
  }

  void sample(const CounterSample& before, const CounterSample& now) {
    const double seconds = static_cast<double>(now.at_ns - before.at_ns) * 1e-9;
    if (seconds <= 0) return;
    const auto rate = [&](std::uint64_t from, std::uint64_t to) {
      return to < from ? 0.0 : static_cast<double>(to - from) / seconds;
    };
    begin_counter("tasks per s", now);
    json_.field("tasks", rate(before.counts.tasks, now.counts.tasks));
    json_.field("inline forks", rate(before.counts.inline_forks, now.counts.inline_forks));
    end_counter();
    begin_counter("steals per s", now);
    for (std::size_t i = 0; i < kDistances; ++i) {
      json_.field(kDistanceNames[i], rate(before.counts.steals[i], now.counts.steals[i]));
    }
    end_counter();
    if (now.fills == FillCounts{}) return;
    begin_counter(fills_, now);
    for (std::size_t i = 0; i < kFillSources; ++i) {
      if (!before.fills.by_source[i] || !now.fills.by_source[i]) continue;
      json_.field(fill_source_name(static_cast<FillSource>(i)),
                  rate(*before.fills.by_source[i], *now.fills.by_source[i]));
    }
    end_counter();
  }

 private:
  void metadata(std::string_view name, int worker) {
    json_.open_object();
    json_.field("name", name);
    json_.field("ph", std::string_view("M"));
    json_.field("pid", pid_);
    json_.field("tid", worker);
    json_.key("args");
    json_.open_object();
  }

  void begin_event(std::string_view name, std::string_view phase, int worker, std::int64_t at_ns) {
    json_.open_object();
    json_.field("name", name);
    json_.field("ph", phase);
    json_.field("ts", static_cast<double>(at_ns) / 1000);
    json_.field("pid", pid_);
    json_.field("tid", worker);
  }

  void instant_with(std::string_view argument, std::uint64_t value) {
    json_.field("s", std::string_view("t"));  // scope thread: a mark on its track
    json_.key("args");
    json_.open_object();
    json_.field(argument, value);
    json_.close_object();
    json_.close_object();
  }

  void begin_counter(std::string_view what, const CounterSample& now) {
    begin_event("worker " + std::to_string(now.worker) + " " + std::string(what), "C", now.worker,
                now.at_ns);
    json_.key("args");
    json_.open_object();
  }
  void end_counter() {
    json_.close_object();
    json_.close_object();
  }

  void begin(int worker, Slice slice, std::string_view name, std::int64_t at_ns,
             std::vector<Slice>& open) {
    open.push_back(slice);
    begin_event(name, "B", worker, at_ns);
    json_.close_object();
  }

  // Also ends all slices inside it. Ignores one whose beginning was lost.
  void end(int worker, Slice slice, std::int64_t at_ns, std::vector<Slice>& open) {
    if (std::find(open.begin(), open.end(), slice) == open.end()) return;
    Slice closed{};
    do {
      closed = open.back();
      open.pop_back();
      json_.open_object();
      json_.field("ph", std::string_view("E"));
      json_.field("ts", static_cast<double>(at_ns) / 1000);
      json_.field("pid", pid_);
      json_.field("tid", worker);
      json_.close_object();
    } while (closed != slice);
  }

  // An arrow starts in the victim's current slice and ends at the thief's next slice.
  void steal(int worker, const TraceEvent& event) {
    const int victim = static_cast<int>(event.value >> 8);
    const std::string_view distance = kDistanceNames.at(event.value & 0xff);
    begin_event("steal: " + std::string(distance), "i", worker, event.at_ns);
    instant_with("victim", static_cast<std::uint64_t>(victim));
    ++flows_;
    for (const auto& [phase, tid] : {std::pair{"s", victim}, std::pair{"f", worker}}) {
      begin_event("steal", phase, tid, event.at_ns);
      json_.field("cat", distance);
      json_.field("id", flows_);
      json_.close_object();
    }
  }

  void write(int worker, const TraceEvent& event, std::vector<Slice>& open) {
    const std::int64_t at = event.at_ns;
    switch (event.kind) {
      case TraceKind::section_begin:
        begin(worker, Slice::section, section_name(static_cast<int>(event.value)), at, open);
        break;
      case TraceKind::section_end: end(worker, Slice::section, at, open); break;
      case TraceKind::job_begin:
        begin(worker, Slice::job, event.value != 0 ? "resumed task" : "task", at, open);
        break;
      case TraceKind::job_end: end(worker, Slice::job, at, open); break;
      case TraceKind::steal: steal(worker, event); break;
      case TraceKind::park: begin(worker, Slice::park, "parked", at, open); break;
      case TraceKind::unpark: end(worker, Slice::park, at, open); break;
      case TraceKind::wake:
        begin_event("wake", "i", worker, at);
        instant_with("worker", event.value);
        break;
      case TraceKind::migration:
        begin_event("migration", "i", worker, at);
        instant_with("from worker", event.value);
        break;
      case TraceKind::move:
        begin_event("moved", "i", worker, at);
        instant_with("core", event.value);
        break;
    }
  }

  JsonWriter& json_;
  int pid_;
  std::string fills_;
  std::uint64_t flows_ = 0;
};

}  // namespace

void write_trace_json(JsonWriter& json, int pid, const std::vector<WorkerTrace>& workers,
                      const std::vector<CounterSample>& samples, std::string_view fills) {
  Writer writer(json, pid, fills);
  json.open_object();
  json.field("displayTimeUnit", std::string_view("ns"));
  json.key("traceEvents");
  json.open_array();
  for (const WorkerTrace& trace : workers) writer.name_worker(trace);
  for (const WorkerTrace& trace : workers) writer.events(trace);
  std::map<int, const CounterSample*> latest;
  for (const CounterSample& sample : samples) {
    const CounterSample*& before = latest[sample.worker];
    if (before != nullptr) writer.sample(*before, sample);
    before = &sample;
  }
  json.close_array();
  json.close_object();
  json.flush();
}

}  // namespace atl::runtime
