#include "pipe.hpp"

#include <algorithm>
#include <atomic>
#include <new>
#include <utility>
#include <vector>

#include "clock.hpp"
#include "isa.hpp"
#include "memory.hpp"
#include "samples.hpp"
#include "threads.hpp"

namespace atl::probe {

namespace {

constexpr std::size_t kWords = kLineBytes / sizeof(std::uint64_t);
// A line as a vector, which the compiler splits into registers of the instruction set.
using Line = std::uint64_t __attribute__((vector_size(kLineBytes)));

// `stride` is 1, or 0 to read the first line repeatedly.
[[gnu::always_inline]] inline std::uint64_t sum_lines(const Line* line, std::size_t count,
                                                      std::size_t stride) {
  Line even{};
  Line odd{};
  for (std::size_t i = 0; i + 1 < count; i += 2) {
    even += line[0];
    odd += line[stride];
    line += 2 * stride;
  }
  if (count % 2 == 1) even += line[0];
  even += odd;
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < kWords; ++i) sum += even[i];
  return sum;
}

using Sum = std::uint64_t (*)(const Line*, std::size_t, std::size_t);

std::uint64_t sum_plain(const Line* line, std::size_t count, std::size_t stride) {
  return sum_lines(line, count, stride);
}

#if defined(__x86_64__)
[[gnu::target("avx2")]] std::uint64_t sum_avx2(const Line* line, std::size_t count,
                                               std::size_t stride) {
  return sum_lines(line, count, stride);
}

[[gnu::target("avx512f")]] std::uint64_t sum_avx512(const Line* line, std::size_t count,
                                                    std::size_t stride) {
  return sum_lines(line, count, stride);
}
#endif

Sum widest_sum() {
#if defined(__x86_64__)
  const Isa isa = best_isa();
  if (isa == Isa::avx512) return sum_avx512;
  if (isa == Isa::avx2) return sum_avx2;
#endif
  return sum_plain;
}

// Word i of the buffer is seed + i.
void produce(Line* line, std::size_t count, std::uint64_t seed) {
  Line value{};
  for (std::size_t i = 0; i < kWords; ++i) value[i] = seed + i;
  for (std::size_t i = 0; i < count; ++i) {
    line[i] = value;
    value += kWords;
  }
}

std::uint64_t expected_sum(std::size_t count, std::size_t stride, std::uint64_t seed) {
  const std::uint64_t words = (stride == 0 ? 1 : count) * kWords;
  // words is a multiple of 8, so the half is exact; the rest may overflow like the sum itself.
  const std::uint64_t once = words * seed + words / 2 * (words - 1);
  return stride == 0 ? once * count : once;
}

std::uint64_t seed_of(std::uint64_t transfer) { return transfer * 0x9E3779B97F4A7C15; }

// Shared by the two sides: how many transfers were written and read.
struct Handover {
  alignas(kApartBytes) std::atomic<std::uint64_t> written{0};
  alignas(kApartBytes) std::atomic<std::uint64_t> read{0};
};
constexpr std::uint64_t kNoMore = ~std::uint64_t{0};

// Waits until the counter is `value` (returns true) or kNoMore.
bool await(const std::atomic<std::uint64_t>& counter, std::uint64_t value, const Team& team) {
  constexpr std::uint32_t kPatience = 1 << 16;
  for (std::uint32_t looks = 1;; ++looks) {
    const std::uint64_t seen = counter.load(std::memory_order_acquire);
    if (seen == value) return true;
    if (seen == kNoMore) return false;
    if (looks % kPatience == 0) team.nap();
    relax();
  }
}

void produce_all(Line* lines, std::size_t count, Handover& handover, const Team& team) {
  for (std::uint64_t transfer = 1;; ++transfer) {
    produce(lines, count, seed_of(transfer));
    handover.written.store(transfer, std::memory_order_release);
    if (!await(handover.read, transfer, team)) return;
  }
}

std::vector<double> consume_all(const Line* lines, std::size_t count, std::size_t stride,
                                Handover& handover, const Limits& limits, const Team& team) {
  Samples samples(limits);
  const Sum sum = widest_sum();
  const auto bytes = static_cast<double>(count * kLineBytes);
  for (std::uint64_t transfer = 1;; ++transfer) {
    await(handover.written, transfer, team);
    const std::uint64_t begin = ticks();
    const std::uint64_t found = sum(lines, count, stride);
    asm volatile("" : : "r"(found));  // before the clock is read
    const auto ns = static_cast<double>(ticks() - begin) * tick_ns();
    if (found != expected_sum(count, stride, seed_of(transfer))) {
      throw Fault(Code::kKernel, "pipe: the consumer read other data than the producer wrote");
    }
    // The first transfer finds its lines in other places than later ones. Never 0 (coarse clocks).
    if (transfer > 1) samples.add(bytes / std::max(ns, 1.0));
    if (samples.done()) break;
    handover.read.store(transfer, std::memory_order_release);
  }
  handover.read.store(kNoMore, std::memory_order_release);
  return samples.values();
}

}  // namespace

Json pipe(const Request& request) {
  const std::vector<int> cpus = request.cpus("cpus", 2, 2);
  const auto home = static_cast<std::size_t>(request.integer("home", 0, 1));
  const std::size_t bytes = request.bytes("bytes");
  if (bytes % kLineBytes != 0) {
    throw Fault(Code::kArgument, "'bytes' must be a multiple of " + std::to_string(kLineBytes));
  }
  const std::size_t stride = request.null_run() ? 0 : 1;
  const Limits limits = request.limits();
  tick_ns();
  Team team(cpus, limits.budget_ns, bytes);
  const Memory buffer(bytes, std::nullopt, false);
  const Memory turns(page_bytes(), std::nullopt, false);
  std::vector<double> gbs;
  team.run([&](std::size_t rank) {
    if (rank == home) {
      buffer.touch();
      new (turns.data()) Handover;
    }
    team.barrier();
    auto* const lines = buffer.as<Line>();
    Handover& handover = *std::launder(turns.as<Handover>());
    if (rank == 0) {
      produce_all(lines, bytes / kLineBytes, handover, team);
    } else {
      gbs = consume_all(lines, bytes / kLineBytes, stride, handover, limits, team);
    }
  });
  Json answer{{"gbs", std::move(gbs)}, {"verified", true}};
  add_threads(answer, team);
  add_pages(answer, buffer);
  return answer;
}

}  // namespace atl::probe
