#include "gups/gups.hpp"

#include <cstddef>
#include <string>

namespace atl::kernels {
namespace {

// The sequence of the HPC Challenge: x^n in GF(2)[x], modulo x^64 + x^2 + x + 1.
constexpr std::uint64_t kReduced = 7;  // x^64

std::uint64_t after(std::uint64_t value) {
  return (value << 1) ^ ((value >> 63) != 0 ? kReduced : 0);
}

std::uint64_t product(std::uint64_t left, std::uint64_t right) {
  std::uint64_t sum = 0;
  for (; right != 0; right >>= 1, left = after(left)) sum ^= (right & 1) != 0 ? left : 0;
  return sum;
}

// x^n, by squaring.
std::uint64_t start(std::uint64_t n) {
  std::uint64_t power = 1;
  for (std::uint64_t square = 2; n != 0; n >>= 1, square = product(square, square)) {
    if ((n & 1) != 0) power = product(power, square);
  }
  return power;
}

std::uint64_t needed(const Settings& settings) { return settings.number("table-mib") << 20; }

Result run(Team& team, const Settings& settings, Conditions& conditions) {
  const std::uint64_t entries = (settings.number("table-mib") << 20) / sizeof(std::uint64_t);
  const std::uint64_t updates = 4 * entries;
  Array<std::uint64_t> table = make_array<std::uint64_t>(conditions.memory, entries);
  const auto update = [&](std::uint64_t first, std::uint64_t last) {
    std::uint64_t* const slots = table.data();
    const std::uint64_t mask = entries - 1;
    std::uint64_t value = start(first);
    for (std::uint64_t at = first; at < last; ++at) {
      value = after(value);
      slots[value & mask] ^= value;
    }
  };
  std::uint64_t errors = 0;
  time_runs(
      conditions,
      [&](int) {
        team.loop(entries, 0, [&](std::size_t first, std::size_t last) {
          for (std::size_t at = first; at < last; ++at) table[at] = at;
        });
      },
      [&](int) { team.loop(updates, 0, update); },
      [&](int) {
        update(0, updates);  // again, by one worker: now all is as at first, but for lost updates
        errors = 0;
        for (std::uint64_t at = 0; at < entries; ++at) errors += table[at] != at ? 1 : 0;
        if (errors <= entries / 100) return;
        throw WrongAnswer("gups: " + std::to_string(errors) + " of " + std::to_string(entries) +
                          " entries are wrong; 1 % are allowed");
      });
  return {.work = static_cast<double>(updates),
          .figures = {{"wrong_entries", static_cast<double>(errors)}}};
}

}  // namespace

const Workload& gups() {
  static const Workload workload = {
      "gups",    "random updates of a large table (RandomAccess of the HPC Challenge)",
      "updates", {{"table-mib", "256", "MiB of the table, a power of two", 1, 1 << 20}},
      needed,    run,
  };
  return workload;
}

}  // namespace atl::kernels
