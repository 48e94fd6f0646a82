// Work on the runtime whose fills are known, where the caches are simulated (docs/simulated.md).
// tests/vm/test_runtime_fills.py judges it.
//
//   runtime-fills-guest APPROACH WORKERS WORK:KIB:DECISIONS...
//
// Each work is a phase that lasts until the approach has decided so often, and long enough to fill
// the caches. Prints a line of JSON for each decision, and one for each phase, with what its second
// half has counted.
//
//   private  each worker reads KIB of its own in order
//   shared   all read at random in the same KIB
//   join     looks up rows of KIB in a hash table of as many rows, which all share
//   sum      each worker adds up its part of KIB in order
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "atoll/runtime/all_do.hpp"
#include "atoll/runtime/array.hpp"
#include "atoll/runtime/runtime.hpp"
#include "cachesim/board_of_guest.hpp"
#include "workloads/join.hpp"

namespace {

constexpr std::size_t kKib = 1024;
constexpr std::size_t kHugePage = 2048 * kKib;
constexpr std::size_t kLine = 64;
// Of each worker in a round. When all meet at its end, some hundred lines go between chiplets.
constexpr std::size_t kAtOnce = std::size_t{1} << 16;
// Of half a phase, on a host that is too busy for more between two decisions.
constexpr std::size_t kLeastRounds = 4;

// The guest's time is simulated: the runtime's 0.1 s between two decisions are seconds of the host.
constexpr std::chrono::milliseconds kInterval(1);
using Numbers = atl::Array<std::uint64_t>;

std::string text(const std::optional<std::uint64_t>& number) {
  return number ? std::to_string(*number) : "null";
}

// Prints what another approach decides.
class Told final : public atl::Approach {
 public:
  explicit Told(const std::string& name) : by_(atl::approach_by_name(name)) {}
  std::string name() const override { return by_->name(); }
  bool needs_intervals() const override { return by_->needs_intervals(); }
  std::vector<int> map(const atl::Places& places, std::span<const int> now,
                       int spread) const override {
    return by_->map(places, now, spread);
  }
  int begin(const atl::Sample& sample) const override { return by_->begin(sample); }
  // So far.
  int decisions() const { return decisions_; }

 protected:
  atl::Decision decide(const atl::Sample& sample) override {
    const atl::Decision decision = by_->step(sample);
    std::ostringstream line;
    line << R"({"spread": )" << sample.spread << R"(, "to": )" << decision.spread
         << R"(, "reason": ")" << decision.reason << R"(", "simulated_s": )" << sample.elapsed_s
         << R"(, "own_l3": )" << text(sample.fills.local_chiplet) << R"(, "other_chiplets": )"
         << text(sample.fills.remote_chiplet) << R"(, "other_nodes": )"
         << text(sample.fills.remote_node) << R"(, "memory": )" << text(sample.fills.memory)
         << "}\n";
    std::cout << line.str() << std::flush;
    ++decisions_;
    return decision;
  }

 private:
  std::atomic<int> decisions_{0};
  const std::unique_ptr<atl::Approach> by_;
};

class Random {
 public:
  explicit Random(int seed) : state_(0x9E3779B97F4A7C15 * static_cast<unsigned>(seed + 1)) {}
  // Below `most`, of 32 bits.
  std::size_t below(std::size_t most) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return (state_ >> 32) * most >> 32;
  }

 private:
  std::uint64_t state_;
};

// What a worker does in a round: kAtOnce things.
using Round = std::function<void(int worker)>;

// Huge pages for each worker, on its node; written, so that they are there.
std::shared_ptr<Numbers> memory(atl::Runtime& runtime, std::size_t bytes_of_worker) {
  const std::size_t pages = (bytes_of_worker + kHugePage - 1) / kHugePage;
  const std::size_t all = pages * kHugePage * static_cast<std::size_t>(runtime.workers());
  const auto numbers = std::make_shared<Numbers>(
      Numbers::partitioned(all / 8, runtime.node_map(), atl::Pages::transparent));
  runtime.all_do([&](int worker) {
    for (std::uint64_t& number : numbers->part(worker)) number = 1;
  });
  return numbers;
}

// Where each worker goes on in the next round.
template <class T>
std::shared_ptr<std::vector<T>> of_each(const atl::Runtime& runtime) {
  const auto all = std::make_shared<std::vector<T>>();
  for (int worker = 0; worker < runtime.workers(); ++worker) all->emplace_back(worker);
  return all;
}

// Each worker reads the lines of as much of its own.
Round in_order(atl::Runtime& runtime, std::size_t bytes) {
  const auto numbers = memory(runtime, bytes);
  const auto places = of_each<std::size_t>(runtime);
  return [numbers, places, lines = bytes / kLine](int worker) {
    const volatile std::uint64_t* const own = numbers->part(worker).data();
    std::size_t line = (*places)[static_cast<std::size_t>(worker)] % lines;
    std::uint64_t sum = 0;
    for (std::size_t times = 0; times < kAtOnce; ++times) {
      sum += own[line * (kLine / 8)];
      line = line + 1 == lines ? 0 : line + 1;
    }
    if (sum != kAtOnce) throw std::runtime_error("a wrong sum");
    (*places)[static_cast<std::size_t>(worker)] = line;
  };
}

// All read numbers at random.
Round at_random(atl::Runtime& runtime, std::size_t bytes) {
  const auto numbers = memory(runtime, bytes / static_cast<std::size_t>(runtime.workers()));
  const auto draws = of_each<Random>(runtime);
  return [numbers, draws, count = bytes / 8](int worker) {
    Random draw = (*draws)[static_cast<std::size_t>(worker)];
    const volatile std::uint64_t* const all = numbers->data();
    for (std::size_t times = 0; times < kAtOnce; ++times) (void)all[draw.below(count)];
    (*draws)[static_cast<std::size_t>(worker)] = draw;
  };
}

// As atoll-workload w3 without its data's cost, over and over.
Round join(atl::Runtime& runtime, std::size_t bytes) {
  using atl::workloads::ChainTable, atl::workloads::Joined, atl::workloads::Record;
  const std::size_t count = bytes / sizeof(Record);
  const auto workers = static_cast<std::size_t>(runtime.workers());
  const auto part = [=](int worker) {
    const auto rank = static_cast<std::size_t>(worker);
    return std::pair(count * rank / workers, count * (rank + 1) / workers);
  };
  struct Tables {
    explicit Tables(std::size_t rows) : build(rows), probe(rows), table(build.all()) {}
    atl::workloads::Rows build, probe;
    ChainTable table;
  };
  const auto tables = std::make_shared<Tables>(count);
  runtime.all_do([&](int worker) {
    Random draw(worker);
    for (auto [row, end] = part(worker); row < end; ++row) {
      tables->build[row] = {static_cast<std::int64_t>(row), 1};
      tables->probe[row] = {static_cast<std::int64_t>(draw.below(count)), 1};
      tables->table.insert(static_cast<std::uint32_t>(row));
    }
  });
  const auto places = of_each<std::size_t>(runtime);
  return [=](int worker) {
    Joined joined;
    const auto [first, end] = part(worker);
    std::size_t row = (*places)[static_cast<std::size_t>(worker)];
    for (std::size_t times = 0; times < kAtOnce; ++times, ++row) {
      const Record& probe = tables->probe[first + row % (end - first)];
      tables->table.find(probe.key, [&](const Record& match) { joined.add(match, probe); });
    }
    if (joined.rows != kAtOnce) throw std::runtime_error("a wrong join");
    (*places)[static_cast<std::size_t>(worker)] = row;
  };
}

Round work(const std::string& name, atl::Runtime& runtime, std::size_t bytes) {
  const auto workers = static_cast<std::size_t>(runtime.workers());
  if (name == "private") return in_order(runtime, bytes);
  if (name == "sum") return in_order(runtime, bytes / workers);
  if (name == "join") return join(runtime, bytes);
  if (name == "shared") return at_random(runtime, bytes);
  throw std::runtime_error(name + ": no such work");
}

// What all workers have got, and the cycles of all CPUs in user mode.
struct Counts {
  std::array<std::uint64_t, atl::kFillSources> fills{};
  std::uint64_t cycles = 0;
};

Counts count(const atl::Runtime& runtime, atl::cachesim::Board& board) {
  Counts counts;
  const atl::Profile profile = runtime.profile();
  for (const atl::WorkerProfile& worker : profile.workers) {
    for (std::size_t source = 0; source < counts.fills.size(); ++source) {
      counts.fills[source] += worker.fills.by_source[source].value_or(0);
    }
  }
  for (unsigned cpu = 0; cpu < board.cpus; ++cpu) {
    std::uint64_t* const row = board.row(cpu, atl::cachesim::kUser);
    for (const unsigned column : {atl::cachesim::kInstructions, atl::cachesim::kStalls}) {
      counts.cycles += std::atomic_ref(row[column]).load(std::memory_order_relaxed);
    }
  }
  return counts;
}

void phase(const std::string& asked, atl::Runtime& runtime, const Told& approach,
           atl::cachesim::Board& board) {
  std::istringstream words(asked);
  std::string name, kib, decisions;
  std::getline(words, name, ':');
  std::getline(words, kib, ':');
  std::getline(words, decisions);
  const Round round = work(name, runtime, std::stoul(kib) * kKib);
  std::size_t rounds = 0;
  const auto until = [&](int decided) {
    for (rounds = 0; approach.decisions() < decided || rounds < kLeastRounds; ++rounds) {
      runtime.all_do(round);
    }
  };
  const int begin = approach.decisions();
  const int many = std::stoi(decisions);
  until(begin + many / 2);
  const Counts before = count(runtime, board);
  until(begin + many);
  const Counts after = count(runtime, board);
  std::cout << R"({"work": ")" << name << R"(", "kib": )" << kib << R"(, "spread": )"
            << runtime.spread() << R"(, "things": )"
            << rounds * kAtOnce * static_cast<std::size_t>(runtime.workers());
  for (std::size_t source = 0; source < before.fills.size(); ++source) {
    std::cout << ", \"" << atl::fill_source_name(static_cast<atl::FillSource>(source))
              << "\": " << after.fills[source] - before.fills[source];
  }
  std::cout << R"(, "simulated_s": )"
            << static_cast<double>(after.cycles - before.cycles) / runtime.workers() / 1e6 /
                   static_cast<double>(board.clock_mhz)
            << "}\n"
            << std::flush;
}

}  // namespace

int main(int count, char** words) try {
  const std::vector<std::string> arguments(words + 1, words + count);
  const auto approach = std::make_shared<Told>(arguments.at(0));
  atl::Runtime runtime(
      {.workers = std::stoi(arguments.at(1)), .own_approach = approach, .interval = kInterval});
  runtime.all_do([](int) {});  // all have begun, and tried to count
  const atl::Profile profile = runtime.profile();
  if (profile.fills_source != "simulated") throw std::runtime_error(profile.remarks.at(0));
  atl::cachesim::Board& board = atl::cachesim::open_board();
  for (std::size_t at = 2; at < arguments.size(); ++at) {
    phase(arguments[at], runtime, *approach, board);
  }
} catch (const std::exception& fault) {
  std::cerr << "runtime-fills-guest: " << fault.what() << '\n';
  return 2;
}
