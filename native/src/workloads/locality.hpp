// Which part of this process's memory is near its threads, estimated from pages.
//
// Counters of memory accesses (numa-query-tuning, table III) need hardware that few machines let a
// program read. The estimate takes the work on each item of a loop to read all pages alike: the
// share of the pages on the node where the work was done, as a mean over the items, and over the
// loops by their time. It counts what a thread has done and not what it does at some moment, so
// neither a thread that waits nor a short run is missed. The pages are those after the loop after
// which there were most.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <istream>
#include <mutex>
#include <optional>
#include <vector>

namespace atl::workloads {

// Bytes on each memory node in the text of /proc/PID/numa_maps, by node, without pages of files.
// Pure.
[[nodiscard]] std::vector<std::uint64_t> bytes_by_node(std::istream& numa_maps);

// The mean of the nodes' shares of all bytes, by the work done on each node. nullopt without pages
// or work. Pure.
[[nodiscard]] std::optional<double> local_share(const std::vector<std::uint64_t>& bytes,
                                                const std::vector<double>& work);

// Whether there is anything to tell.
[[nodiscard]] bool several_memory_nodes();

// What a team (plain_team.hpp) needs to estimate the local share of its loops.
class WatchedTeam {
 public:
  // Watches the loops from now on, which takes time: a lock for each part of a loop, and a walk
  // over the pages after the loop.
  void watch();
  // Of the watched loops that have ended; nullopt if there is none, or the kernel does not tell
  // where pages are. Not while a loop runs.
  [[nodiscard]] std::optional<double> local_share() const;

 protected:
  // The calling thread has done a part of a loop.
  void worked(std::size_t items) {
    if (watched_) count(items);
  }
  // The loop has ended on all threads; what they have made is still there.
  void loop_ended() {
    if (watched_) look();
  }

 private:
  void count(std::size_t items);
  void look();

  bool watched_ = false;
  std::mutex mutex_;                  // guards `items_`
  std::vector<double> items_;         // done in this loop, by node
  std::vector<double> work_;          // seconds of all loops, shared out to the nodes by items
  std::vector<std::uint64_t> bytes_;  // by node, after the loop with most
  std::chrono::steady_clock::time_point since_;
};

}  // namespace atl::workloads
