#include "profiler.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <stdexcept>

#include "cpu_model.hpp"
#include "text.hpp"
#include "thread_usage.hpp"
#include "write_whole.hpp"

namespace atl::runtime {

namespace {

constexpr std::size_t kSamplesKept = 65'536;

// Counters start at 0 when they are opened.
constexpr FillReading kStart{};

std::vector<SectionProfile> sections_of(const Recorder& recorder, const FillTable* table) {
  std::vector<SectionProfile> sections;
  for (int id = 0; id < kMaxSections; ++id) {
    const SectionBook* book = recorder.book(id);
    if (book == nullptr) continue;
    sections.push_back({.name = section_name(id),
                        .entered = book->entered.read(),
                        .seconds = static_cast<double>(book->ns.read()) * 1e-9,
                        .counts = read_counts(book->counts),
                        .fills_s = static_cast<double>(book->fills_ns.read()) * 1e-9,
                        .fills = runtime::fills_of(*book, table)});
  }
  std::sort(sections.begin(), sections.end(),
            [](const SectionProfile& a, const SectionProfile& b) { return a.name < b.name; });
  return sections;
}

// `program+0x1a2b`, as addr2line takes it: task types are seldom among the symbols that dladdr
// knows.
std::string type_name(std::uintptr_t type) {
  if (type == kResumedType) return "(resumed)";
  if (type == kOtherTypes) return "(others)";
  Dl_info found{};
  std::array<char, 32> offset{};
  if (dladdr(reinterpret_cast<const void*>(type), &found) == 0 || found.dli_fname == nullptr) {
    std::snprintf(offset.data(), offset.size(), "0x%zx", static_cast<std::size_t>(type));
    return offset.data();
  }
  std::snprintf(offset.data(), offset.size(), "+0x%zx",
                static_cast<std::size_t>(type - reinterpret_cast<std::uintptr_t>(found.dli_fbase)));
  const std::string_view path = found.dli_fname;
  return std::string(path.substr(path.rfind('/') + 1)) + offset.data();
}

std::vector<TypeProfile> types_of(const Recorder& recorder, const FillTable* table) {
  std::vector<TypeProfile> types;
  for (const TypeBook& book : recorder.type_books()) {
    const std::uintptr_t type = book.type.load(std::memory_order_relaxed);
    if (type == TypeBook::kNoType || book.fills_ns.read() == 0) continue;
    types.push_back({.type = type_name(type),
                     .fills_s = static_cast<double>(book.fills_ns.read()) * 1e-9,
                     .fills = runtime::fills_of(book, table)});
  }
  std::ranges::sort(types, {}, &TypeProfile::type);
  return types;
}

}  // namespace

Profiler::Worker::Worker(int number, WorkerCounts& own, std::size_t trace_events,
                         std::int64_t origin_ns)
    : rank(number),
      counts(own),
      trace(trace_events == 0 ? nullptr : std::make_unique<TraceRing>(trace_events)),
      recorder(own, trace.get(), origin_ns) {}

Profiler::Profiler(std::span<WorkerCounts* const> counts, const ProfilerOptions& options)
    : options_(options), start_ns_(now_ns()) {
  for (WorkerCounts* own : counts) {
    const int rank = static_cast<int>(workers_.size());
    workers_.push_back(std::make_unique<Worker>(rank, *own, options.trace_events, start_ns_));
  }
  if (options.l3) {
    if (const auto mount = find_resctrl(read_text(options.mountinfo).value_or(""))) {
      l3_.emplace(*mount, own_group_name(), gettid());
    }
  }
  if (!options.fills) {
    no_fills_ = "n/a (counting is off: RuntimeOptions::count_fills)";
    return;
  }
  if (!options.devices.empty()) find_board(options);
  if (board_) return;
  if (const auto cpu = cpu_model(read_text("/proc/cpuinfo").value_or(""))) {
    table_ = fill_table(*cpu);
    if (table_ == nullptr) {
      no_fills_ = "n/a (no event encodings for " + cpu->vendor + " family " +
                  std::to_string(cpu->family) + " model " + std::to_string(cpu->model) +
                  "); report the CPU with its vendor's event list";
    }
  } else {
    no_fills_ = "n/a (no event encodings for this kind of CPU)";
  }
}

Profiler::~Profiler() = default;

void Profiler::find_board(const ProfilerOptions& options) {
  try {
    board_ = BoardFills::find(options.devices, *options.places, static_cast<int>(workers_.size()));
    if (board_) table_ = &BoardFills::table();
  } catch (const std::runtime_error& fault) {
    no_board_ = std::string("n/a (simulated caches: ") + fault.what() + ")";
    if (geteuid() != 0) no_board_ += "; run as root";
  }
}

void Profiler::attach(int worker) {
  Worker& own = *workers_[index(worker)];
  Recorder::set_current(&own.recorder);
  const std::scoped_lock lock(own.mutex);
  own.tid = gettid();
  own.attached = true;
  if (board_) {
    own.recorder.set_fills(&board_->of(worker), table_);
  } else if (table_ != nullptr) {
    const int error = own.counters.open(*table_);
    if (error == 0) {
      own.recorder.set_fills(&own.counters, table_);
    } else {
      const std::scoped_lock all(mutex_);
      no_fills_ = why_no_counters(
          error, read_text("/proc/sys/kernel/perf_event_paranoid").value_or("not known"));
    }
  }
  const std::scoped_lock all(mutex_);
  if (l3_) l3_->add_thread(own.tid);
}

void Profiler::detach(int worker) {
  Worker& own = *workers_[index(worker)];
  own.recorder.set_fills(nullptr, nullptr);
  Recorder::set_current(nullptr);
  const std::scoped_lock lock(own.mutex);
  own.last_fills = fills_of(own);
  own.last_usage = usage_of_thread(own.tid);
  own.counters = FillCounters{};
  own.attached = false;
}

void Profiler::sample() {
  const std::int64_t at_ns = now_ns() - start_ns_;
  std::vector<CounterSample> fresh;
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    const int worker = static_cast<int>(i);
    fresh.push_back({at_ns, worker, read_counts(workers_[i]->counts), fills(worker)});
  }
  const std::scoped_lock lock(mutex_);
  samples_.insert(samples_.end(), fresh.begin(), fresh.end());
  while (samples_.size() > kSamplesKept) samples_.pop_front();
}

FillCounts Profiler::fills(int worker) const {
  const Worker& own = *workers_[index(worker)];
  const std::scoped_lock lock(own.mutex);
  return fills_of(own);
}

std::vector<L3Profile> Profiler::l3_of_workers() const {
  {
    const std::scoped_lock lock(mutex_);
    if (!l3_ || !l3_->counts_workers_alone()) return {};
  }
  return l3_->read();
}

// Call it with the worker's mutex held.
FillCounts Profiler::fills_of(const Worker& worker) const {
  if (!worker.attached) return worker.last_fills;
  const std::optional<FillReading> now =
      board_ ? board_->of(worker.rank).read() : worker.counters.read_from_outside();
  return now ? fills_between(*table_, kStart, *now) : FillCounts{};
}

WorkerProfile Profiler::profile_of(std::size_t index) const {
  const Worker& worker = *workers_[index];
  WorkerProfile profile;
  profile.worker = static_cast<int>(index);
  profile.counts = read_counts(worker.counts);
  profile.sections = sections_of(worker.recorder, table_);
  profile.types = types_of(worker.recorder, table_);
  profile.lost_trace_events = worker.trace == nullptr ? 0 : worker.trace->lost();
  const std::scoped_lock lock(worker.mutex);
  profile.tid = worker.tid;
  profile.fills = fills_of(worker);
  profile.usage = worker.attached ? usage_of_thread(worker.tid) : worker.last_usage;
  return profile;
}

Profile Profiler::snapshot() const {
  Profile profile;
  profile.seconds = static_cast<double>(now_ns() - start_ns_) * 1e-9;
  for (std::size_t i = 0; i < workers_.size(); ++i) profile.workers.push_back(profile_of(i));
  if (l3_) profile.l3 = l3_->read();
  const std::scoped_lock lock(mutex_);
  if (table_ != nullptr && no_fills_.empty()) {
    profile.cpu = table_->cpu;
    profile.fills_of = table_->fills_of;
    profile.fills_source = board_ ? "simulated" : "hardware";
  }
  add_remarks(profile);
  return profile;
}

void Profiler::add_remarks(Profile& profile) const {
  if (board_) {
    profile.remarks.emplace_back(
        "fills: simulated, of the CPUs that the workers are bound to; no figures of hardware");
  } else if (!no_board_.empty() && (table_ == nullptr || !no_fills_.empty())) {
    profile.remarks.push_back("fills: " + no_board_);
  } else if (!no_fills_.empty()) {
    profile.remarks.push_back("fills: " + no_fills_);
  } else if (table_ != nullptr) {
    FillCounts counted;
    for (const FillEvent& event : table_->events) counted.of(event.source) = 0;
    if (!counted.of(FillSource::local_chiplet)) {
      profile.remarks.push_back(std::string("fills from chiplets: n/a (") + table_->cpu +
                                " does not tell them apart); node_cache has both");
    }
  }
  const auto scaled = [](const WorkerProfile& worker) {
    return worker.fills != FillCounts{} && worker.fills.running_share < 0.999;
  };
  if (std::any_of(profile.workers.begin(), profile.workers.end(), scaled)) {
    profile.remarks.emplace_back(
        "fills: estimates (others also use the counters: running_share); stop other profilers, or "
        "run 'sysctl kernel.nmi_watchdog=0'");
  }
  if (!options_.l3) return;
  if (!l3_) {
    profile.remarks.emplace_back(
        "l3: n/a (resctrl is not mounted); where the CPU has it, run 'mount -t resctrl resctrl "
        "/sys/fs/resctrl'");
  } else if (!l3_->remark().empty()) {
    profile.remarks.push_back("l3: " + l3_->remark());
  }
}

void Profiler::write_trace(const std::string& path) const {
  if (options_.trace_events == 0) {
    throw RuntimeFault("no trace was recorded; start the runtime with trace_events above 0");
  }
  std::vector<WorkerTrace> traces;
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    WorkerTrace trace;
    trace.worker = static_cast<int>(i);
    trace.events = workers_[i]->trace->copy(trace.lost);
    traces.push_back(std::move(trace));
  }
  std::vector<CounterSample> samples;
  {
    const std::scoped_lock lock(mutex_);
    samples.assign(samples_.begin(), samples_.end());
  }
  write_whole(path, [&](base::WholeFile& file) {
    JsonWriter json([&](std::string_view part) { file.write(part); });
    write_trace_json(json, getpid(), traces, samples, board_ ? "simulated fills" : "fills");
  });
}

Fills controller_fills(const FillCounts& before, const FillCounts& now) {
  const auto since = [&](FillSource source) -> std::optional<std::uint64_t> {
    const std::optional<std::uint64_t>& last = now.of(source);
    if (!last) return std::nullopt;
    // Scaled counts are estimates and may fall a little.
    const std::uint64_t first = before.of(source).value_or(0);
    return *last > first ? *last - first : 0;
  };
  Fills fills;
  fills.local_chiplet = since(FillSource::local_chiplet);
  fills.remote_chiplet = since(FillSource::remote_chiplet);
  fills.remote_node = since(FillSource::remote_node);
  const std::optional<std::uint64_t> local = since(FillSource::memory_local);
  const std::optional<std::uint64_t> remote = since(FillSource::memory_remote);
  if (local && remote) fills.memory = *local + *remote;
  return fills;
}

}  // namespace atl::runtime
