#include "run.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <list>
#include <span>
#include <string>
#include <system_error>
#include <type_traits>
#include <vector>

#include "aggregate_fast.hpp"
#include "aggregate_paper.hpp"
#include "atoll_team.hpp"
#include "base/available.hpp"
#include "base/whole_file.hpp"
#include "index_join.hpp"
#include "indexes/art.hpp"
#include "indexes/btree.hpp"
#include "indexes/masstree.hpp"
#include "indexes/skip_list.hpp"
#include "join_fast.hpp"
#include "locality.hpp"
#include "need.hpp"
#include "plain_team.hpp"
#include "verify.hpp"

namespace atl::workloads {
namespace {

template <class F>
double seconds(F&& function) {
  const auto begin = std::chrono::steady_clock::now();
  function();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

std::uint64_t peak_bytes() { return base::number_after("/proc/self/status", "VmHWM:") * 1024; }

// How often the kernel has moved this process's threads to another CPU. nullopt: the kernel does
// not count it (it needs CONFIG_SCHED_DEBUG).
std::optional<std::uint64_t> migrations() {
  if (!std::filesystem::exists("/proc/self/sched")) return std::nullopt;
  std::uint64_t all = 0;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    all += base::number_after((thread.path() / "sched").string(), "se.nr_migrations");
  }
  return all;
}

struct Table {
  const char* name;
  std::vector<std::span<const Record>> parts;
};

// All files or none: no old answer stays beside new records if the disk fills up.
void save(const Options& options, const std::array<Table, 2>& tables) {
  if (options.folder.empty()) return;
  std::list<base::WholeFile> files;
  for (const Table& table : tables) {
    base::WholeFile& file =
        files.emplace_back((std::filesystem::path(options.folder) / table.name).string());
    for (const std::span<const Record> part : table.parts) {
      file.write({reinterpret_cast<const char*>(part.data()), part.size_bytes()});
    }
  }
  for (base::WholeFile& file : files) file.commit();
}

void spread(std::span<Record> rows, std::uint64_t key_step) {
  if (key_step == 1) return;
  for (Record& row : rows) row.key *= static_cast<std::int64_t>(key_step);
}

// In the paper the system decides.
Pages pages_of(const Options& options) {
  return options.variant == Variant::kFast ? Pages::kHuge : Pages::kDefault;
}

// The input: each thread touches and makes the part that it will read, so that the pages lie near
// it.
template <class Team>
struct Input {
  Input(Team& team, const Options& options)
      : records(options.data.records, pages_of(options)),
        keys(joins(options.workload) ? options.data.groups : 0, pages_of(options)) {
    for (const Rows* const rows : {&records, &keys}) {
      team.shares(rows->size(),
                  [&](std::size_t first, std::size_t last) { rows->touch(first, last); });
    }
  }
  void make(Team& team, const Options& options) const {
    const DataSpec& data = options.data;
    team.shares(records.size(), [&](std::size_t first, std::size_t last) {
      const std::span<Record> part = records.all().subspan(first, last - first);
      fill(data, first, part);
      spread(part, options.key_step);
    });
    team.shares(keys.size(), [&](std::size_t first, std::size_t last) {
      const std::span<Record> part = keys.all().subspan(first, last - first);
      fill_keys(data.groups, data.seed, first, part);
      spread(part, options.key_step);
    });
  }
  Rows records;
  Rows keys;  // w3, w4: the smaller table
};

// Runs `work` as often as wanted, timed, and returns its last answer.
template <class Team, class Work>
auto repeat(Team& team, const Options& options, Result& result, Work&& work) {
  std::optional<std::invoke_result_t<Work&>> answer;
  const auto before = migrations();
  for (int run = 0; run < options.runs; ++run) {
    answer.reset();
    result.runs_s.push_back(seconds([&] { answer.emplace(work()); }));
  }
  result.peak_bytes = peak_bytes();
  if (before) result.migrations = std::max(*migrations(), *before) - *before;
  if (several_memory_nodes()) {
    answer.reset();
    team.watch();  // a run of its own, which is not timed
    answer.emplace(work());
    result.local_share = team.local_share();
  }
  return std::move(*answer);
}

void require(bool right, const Options& options) {
  if (right) return;
  throw WrongAnswer(std::string(name_of(options.workload)) + ", " + name_of(options.variant) +
                    ", on " + name_of(options.scheduler) +
                    ": wrong answer; this is a bug in Atoll, please report it");
}

template <class Team>
void aggregate(Team& team, const Options& options, std::span<const Record> records,
               Result& result) {
  const bool fast = options.variant == Variant::kFast;
  const bool counts = options.workload == Workload::kCount;
  const std::size_t groups = options.data.groups;
  const Groups answer = repeat(team, options, result, [&] {
    if (counts)
      return fast ? count_fast(team, records, groups) : count_paper(team, records, groups);
    return fast ? median_fast(team, records, groups) : median_paper(team, records, groups);
  });
  std::uint64_t sum = 0;
  for (const std::vector<Record>& part : answer) {
    result.rows += part.size();
    for (const Record& group : part) sum += static_cast<std::uint64_t>(group.value);
  }
  result.sums = {sum};
  if (options.check) {
    require(counts ? right_counts(records, answer) : right_medians(records, answer), options);
  }
  save(options, {{{"records.bin", {records}}, {"answer.bin", {answer.begin(), answer.end()}}}});
}

template <class Sink, Index I, class Team>
Joined joined_by(Team& team, const Options& options, const Input<Team>& input, Result& result) {
  I index;
  result.build_s = seconds([&] { build_index(team, index, input.keys.all()); });
  return total(repeat(team, options, result, [&] {
    return join_by<Sink>(team, index, input.records.all(), options.variant == Variant::kFast);
  }));
}

template <class Sink, class Team>
Joined index_joined(Team& team, const Options& options, const Input<Team>& input, Result& result) {
  switch (options.index) {
    case IndexKind::kArt: return joined_by<Sink, Art>(team, options, input, result);
    case IndexKind::kMasstree: return joined_by<Sink, Masstree>(team, options, input, result);
    case IndexKind::kBTree: return joined_by<Sink, BTree>(team, options, input, result);
    case IndexKind::kSkipList: break;
  }
  return joined_by<Sink, SkipList>(team, options, input, result);
}

template <class Sink, class Team>
Joined joined(Team& team, const Options& options, const Input<Team>& input, Result& result) {
  if (options.workload == Workload::kIndexJoin) {
    return index_joined<Sink>(team, options, input, result);
  }
  return total(repeat(team, options, result, [&] {
    return options.variant == Variant::kFast
               ? join_fast<Sink>(team, input.keys.all(), input.records.all())
               : join_paper<Sink>(team, input.keys.all(), input.records.all());
  }));
}

template <class Team>
void join(Team& team, const Options& options, const Input<Team>& input, Result& result) {
  const Joined answer = options.keep ? joined<Kept>(team, options, input, result)
                                     : joined<Joined>(team, options, input, result);
  result.rows = answer.rows;
  result.sums = {answer.build_sum, answer.probe_sum};
  if (options.check) require(right_join(input.keys.all(), input.records.all(), answer), options);
  save(options, {{{"records.bin", {input.records.all()}}, {"keys.bin", {input.keys.all()}}}});
}

template <class Team>
Result run_on(Team& team, const Options& options) {
  Result result;
  result.input_bytes = input_bytes(options);
  team.run([&] {
    const Input<Team> input(team, options);
    result.generate_s = seconds([&] { input.make(team, options); });
    if (joins(options.workload)) {
      join(team, options, input, result);
    } else {
      aggregate(team, options, input.records.all(), result);
    }
  });
  return result;
}

}  // namespace

Result run(const Options& options) {
  require_memory(options, base::available_bytes());
  if (!options.folder.empty()) {
    std::error_code fault;
    std::filesystem::create_directories(options.folder, fault);
    if (fault) throw std::system_error(fault, options.folder);
  }
  if (options.scheduler == Scheduler::kPlain) {
    PlainTeam team(options.threads, options.pin);
    return run_on(team, options);
  }
  AtollTeam team(options.threads);
  return run_on(team, options);
}

}  // namespace atl::workloads
