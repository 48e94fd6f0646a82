#include "load.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "chase_walker.hpp"
#include "clock.hpp"
#include "memory.hpp"
#include "parts.hpp"
#include "samples.hpp"
#include "threads.hpp"

namespace atl::probe {
namespace {

// Lines between two checks for the end, after which the lines are counted: a few microseconds of
// reading (64 KiB) or spinning, so that few lines are uncounted when the samples end.
std::size_t stretch_lines(std::uint64_t gap) {
  constexpr std::uint64_t kMost = 1024;
  constexpr std::uint64_t kSteps = 16'384;
  return std::clamp<std::uint64_t>(kSteps / (gap + 1), 1, kMost);
}
// Latency settles within a millisecond; the mean of the loaders' bandwidth needs at least this.
constexpr std::int64_t kLeastNs = 10'000'000;
constexpr std::int64_t kMostGap = 1'000'000;
// The value of every word of the loaders' memory, so that the sum proves that all was read.
constexpr std::uint64_t kWord = 0x0000'0001'0000'0001;

// What a loader has read; on separate cache lines.
struct alignas(kApartBytes) Count {
  std::atomic<std::uint64_t> lines{0};
  bool right = true;
};

class Loaders {
 public:
  Loaders(const Memory& memory, std::size_t offset, std::size_t bytes, std::size_t count,
          std::uint64_t gap, bool null_run)
      : memory_(memory),
        offset_(offset),
        bytes_(bytes),
        gap_(gap),
        stretch_(stretch_lines(gap)),
        null_run_(null_run),
        counts_(count) {}

  void fill(std::size_t index) const {
    const auto [data, lines] = part(index);
    auto* const words = reinterpret_cast<std::uint64_t*>(data);
    std::fill_n(words, lines * kLineBytes / sizeof(std::uint64_t), kWord);
  }

  void live(std::size_t index, const Team& team) {
    const auto [data, lines] = part(index);
    Count& count = counts_[index];
    // Relaxed: `ended` guards no other memory, and the barrier after it orders the rest.
    while (!ended_.load(std::memory_order_relaxed)) {
      for (std::size_t at = 0; at < lines && !ended_.load(std::memory_order_relaxed);) {
        team.check();
        const std::size_t now = std::min(stretch_, lines - at);
        const std::uint64_t sum = load_lines(data + at * kLineBytes, now, gap_, null_run_);
        count.right &= null_run_ || sum == now * kWord;
        count.lines.fetch_add(now, std::memory_order_relaxed);
        at += now;
      }
    }
  }

  void end() { ended_.store(true, std::memory_order_relaxed); }

  [[nodiscard]] std::uint64_t bytes_read() const {
    std::uint64_t lines = 0;
    for (const Count& count : counts_) lines += count.lines.load(std::memory_order_relaxed);
    return lines * kLineBytes;
  }
  [[nodiscard]] bool right() const {
    return std::all_of(counts_.begin(), counts_.end(),
                       [](const Count& count) { return count.right; });
  }

 private:
  [[nodiscard]] std::pair<std::byte*, std::size_t> part(std::size_t index) const {
    const Part lines = part_of(bytes_ / kLineBytes, counts_.size(), index, 1);
    return {memory_.data() + offset_ + lines.begin * kLineBytes, lines.end - lines.begin};
  }

  const Memory& memory_;
  std::size_t offset_;
  std::size_t bytes_;
  std::uint64_t gap_;
  std::size_t stretch_;
  bool null_run_;
  std::vector<Count> counts_;
  alignas(kApartBytes) std::atomic<bool> ended_{false};
};

}  // namespace

std::uint64_t load_lines(const std::byte* data, std::size_t lines, std::uint64_t gap,
                         bool null_run) {
  std::uint64_t sum = 0;
  for (std::size_t line = 0; line < lines; ++line) {
    if (!null_run) {
      std::uint64_t word;
      std::memcpy(&word, data + line * kLineBytes, sizeof word);
      // Opaque, so that the compiler cannot turn 16 loads into one gather.
      asm volatile("" : "+r"(word));
      sum += word;
    }
    for (std::uint64_t step = gap; step > 0; --step) asm volatile("" : "+r"(step));
  }
  return sum;
}

Json load(const Request& request) {
  const Limits limits = request.limits();
  const auto gap = request.integer_or_null("gap", 0, kMostGap);
  std::vector<int> cpus{request.cpu("cpu")};
  const std::vector<int> loaders = request.cpus("loaders", 0);
  if (std::find(loaders.begin(), loaders.end(), cpus.front()) != loaders.end()) {
    throw Fault(Code::kArgument,
                "loaders: CPU " + std::to_string(cpus.front()) + " is the chaser's; use another");
  }
  if (gap) cpus.insert(cpus.end(), loaders.begin(), loaders.end());

  Walker walker(request.bytes("bytes"), request.null_run());
  const std::size_t count = cpus.size() - 1;
  const std::size_t loader_bytes = count == 0 ? 0 : walker.bytes();
  if (count > 0 && loader_bytes < count * kLineBytes) {
    throw Fault(Code::kArgument, "bytes: " + std::to_string(loader_bytes) +
                                     " is less than a line for each of " + std::to_string(count) +
                                     " loaders");
  }
  Team team(cpus, limits.budget_ns, walker.bytes() + loader_bytes);
  const Memory memory(walker.bytes() + loader_bytes, request.node(), request.flag("huge", false));
  Loaders others(memory, walker.bytes(), loader_bytes, count,
                 static_cast<std::uint64_t>(gap.value_or(0)), request.null_run());
  Json answer;
  team.run([&](std::size_t rank) {
    if (rank > 0) {
      others.fill(rank - 1);
      team.barrier();
      others.live(rank - 1, team);
      return;
    }
    team.barrier();
    // Prepared under load, because the number of loads in a sample depends on it.
    walker.prepare(memory.data());
    Samples samples(limits);
    const std::uint64_t before = others.bytes_read();
    const std::int64_t begin_ns = now_ns();
    const std::int64_t least_ns = begin_ns + (count > 0 ? std::min(limits.budget_ns, kLeastNs) : 0);
    while (!samples.done() || now_ns() < least_ns) {
      team.check();
      samples.add(walker.sample());
    }
    const std::int64_t end_ns = now_ns();
    const std::uint64_t after = others.bytes_read();
    others.end();
    walker.verify();
    answer["load_ns"] = samples.values();
    answer["gbs"] = static_cast<double>(after - before) / static_cast<double>(end_ns - begin_ns);
  });
  if (!others.right()) {
    throw Fault(Code::kKernel, "load: a loader read wrong data; the figure is invalid");
  }
  add_threads(answer, team);
  add_pages(answer, memory);
  return answer;
}

}  // namespace atl::probe
