// RandomAccess of the HPC Challenge: giga-updates per second of a table that no cache holds.
//
// Each update takes the next number of a pseudorandom sequence and xors it into the entry that the
// number's low bits name; there are four times as many updates as entries. The rules (Luszczek et
// al., "Introduction to the HPC Challenge Benchmark Suite", 2005): a worker may look at most 1,024
// updates ahead, and 1 % of the entries may be wrong in the end, as workers may lose each other's
// updates. Since xor undoes itself, the check does all updates once more, this time atomically, and
// counts the entries that are not as they were at first.
//
//   plain     The loop itself, an update after the other. The CPU's own look-ahead hides part of
//             the memory's latency: as many misses as its window of instructions holds.
//   ahead     The loop that asks for the line of the 64th update from now: the most that this
//             memory gives, for comparison. A sequence of its own runs ahead, which other work does
//             not have.
//   tasks     16 suspended tasks a worker (stackless coroutines, as in ARCAS 4.4), which share a
//             sequence: each takes eight numbers, asks for their lines, suspends, and does the
//             updates when it is its turn again. So 128 lines are on their way at any time, which
//             is more than a core can have; a switch costs 2 ns for eight updates. (Coroutines for
//             prefetching: Jonathan et al., "Exploiting Coroutines to Attack the 'Killer
//             Nanoseconds'", VLDB 2018.)
//   messages  In the manner of RING (Meng and Tan, 2017): each entry has an owner, the rank on
//             whose node it lies, and only the owner touches it. Updates go to it in batches. A
//             sender never waits: what finds the owner's box full it does itself.
//
// With all but `messages` a piece of the sequence is an item of the loop, so the scheduler
// balances it and nothing stays on a chiplet: each update is a miss, and a line of 64 bytes is read
// and, in the end, written. With `messages` all lines of a part go through the caches of its
// owner's chiplet.
#include "gups/gups.hpp"

#include <atomic>
#include <cstddef>
#include <string>

#include "gups/messages.hpp"
#include "gups/sequence.hpp"
#include "gups/table.hpp"
#include "gups/tasks.hpp"

namespace atl::kernels {
namespace {

void update_plainly(Table table, Range range) {
  std::uint64_t value = start(range.first);
  for (std::uint64_t at = range.first; at < range.last; ++at) {
    value = after(value);
    table.update(value);
  }
}

// The check's, and the variant `ahead`: its lines are on their way, as many as a core can have.
template <void (Table::*kUpdate)(std::uint64_t) const>
void update_ahead(Table table, Range range) {
  constexpr std::uint64_t kAhead = 64;
  std::uint64_t value = start(range.first);
  std::uint64_t ahead = start(range.first + kAhead);
  for (std::uint64_t at = range.first; at < range.last; ++at) {
    table.prefetch(ahead = after(ahead));
    (table.*kUpdate)(value = after(value));
  }
}

std::uint64_t gups_needed(const Settings& settings, int) {
  return settings.number("table-mib") << 20;
}

Result run_gups(Team& team, const Settings& settings, Conditions& conditions) {
  const std::string& variant = settings.text("variant");
  const std::uint64_t entries = (settings.number("table-mib") << 20) / sizeof(std::uint64_t);
  if ((entries & (entries - 1)) != 0) {
    throw UsageFault("--table-mib " + settings.text("table-mib") + ": not a power of two");
  }
  const std::uint64_t updates = 4 * entries;
  Array<std::uint64_t> array = make_array<std::uint64_t>(conditions.memory, entries);
  const Table table{array.data(), entries - 1};

  const auto by = [&](void (*piece)(Table, Range)) {
    team.loop(updates, 0,
              [&](std::size_t first, std::size_t last) { piece(table, {first, last}); });
  };
  const auto by_messages = [&] {
    const auto ranks = static_cast<std::uint64_t>(team.workers());
    Messages messages(table, entries, team.workers());
    team.each([&](int rank) {
      const auto own = static_cast<std::uint64_t>(rank);
      messages.send(own, {updates * own / ranks, updates * (own + 1) / ranks});
    });
    team.each([&](int rank) { messages.receive(static_cast<std::size_t>(rank)); });
    return messages.done_by_senders();
  };

  std::uint64_t by_senders = 0;
  std::uint64_t errors = 0;
  time_runs(
      conditions,
      [&](int) {
        team.loop(entries, 0, [&](std::size_t first, std::size_t last) {
          for (std::size_t at = first; at < last; ++at) array[at] = at;
        });
      },
      [&](int) {
        if (variant == "plain") by(update_plainly);
        if (variant == "ahead") by(update_ahead<&Table::update>);
        if (variant == "tasks") by(update_by_tasks);
        if (variant == "messages") by_senders = by_messages();
      },
      [&](int) {
        errors = undo_updates(team, array);
        if (errors <= entries / 100) return;
        throw WrongAnswer("gups: " + std::to_string(errors) + " of " + std::to_string(entries) +
                          " entries are wrong; 1 % are allowed");
      });
  constexpr double kLine = 64;  // is read, and written when it leaves the caches
  Result result{.work = static_cast<double>(updates),
                .traffic_bytes = 2 * kLine * static_cast<double>(updates),
                .figures = {{"wrong_entries", static_cast<double>(errors)}}};
  if (variant == "messages") {
    result.figures.emplace_back("updates_by_senders", static_cast<double>(by_senders));
  }
  return result;
}

}  // namespace

std::uint64_t undo_updates(Team& team, Array<std::uint64_t>& array) {
  const Table table{array.data(), array.size() - 1};
  team.loop(4 * array.size(), 0, [&](std::size_t first, std::size_t last) {
    update_ahead<&Table::update_safely>(table, {first, last});
  });
  std::atomic<std::uint64_t> wrong{0};
  team.loop(array.size(), 0, [&](std::size_t first, std::size_t last) {
    std::uint64_t found = 0;
    for (std::size_t at = first; at < last; ++at) found += array[at] != at ? 1 : 0;
    wrong.fetch_add(found, std::memory_order_relaxed);  // read after the loop
  });
  return wrong;
}

const Workload& gups() {
  static const Workload workload = {
      "gups",
      "random updates of a large table (RandomAccess of the HPC Challenge)",
      "updates",
      {{"table-mib", "256", "MiB of the table, a power of two", 1, 1 << 20},
       {"variant",
        "tasks",
        "tasks that suspend for each miss, the plain loop, it with lines fetched ahead, or "
        "messages",
        0,
        0,
        {"tasks", "plain", "ahead", "messages"}}},
      gups_needed,
      run_gups,
  };
  return workload;
}

}  // namespace atl::kernels
