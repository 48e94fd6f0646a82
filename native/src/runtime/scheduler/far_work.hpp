// Whether a thief takes work from a victim that is far: on another chiplet or node.
//
// A steal moves a few cache lines, at the price of the distance. If the victim itself gets to the
// work sooner than the lines arrive, the steal only slows both down. The victim needs
// (ready words) x (its mean task time) for what it has, and the thief goes if that is more than the
// price. It learns the mean by watching how many tasks the victim runs between its looks, so the
// first look at a far victim takes nothing. Work on the own chiplet is never waited for.
//
// The oldest word of a tree of forks is half of the tree, however short its leaves are, so the
// estimate may be too low. Therefore work that a search still finds after the time of the price is
// taken: a thief never waits longer than the steal takes, as in renting skis (Karlin et al.,
// "Competitive snoopy caching", Algorithmica 1988), and nothing starves.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "atoll/runtime/controller.hpp"
#include "atoll/runtime/victims.hpp"

namespace atl::runtime {

// By Distance, in ns; 0 on the own chiplet.
using StealCosts = std::array<std::int64_t, kDistances>;

// Lines that a steal moves: the ends of the deque, a slot, the task, and what it captures.
inline constexpr int kLinesOfASteal = 4;

[[nodiscard]] inline StealCosts steal_costs(const FillLatency& latency) {
  const auto cost = [](double line_ns) {
    return static_cast<std::int64_t>(line_ns * kLinesOfASteal);
  };
  const std::int64_t node = cost(latency.remote_chiplet_ns);
  return {0, node, node, cost(latency.remote_node_ns)};
}

// What a thief knows of a victim.
struct FarLook {
  std::int64_t words = 0;       // ready now
  std::int64_t watched_ns = 0;  // since a look, since when each has found work there
  std::uint64_t ran = 0;        // tasks and forks that the victim has run since that look
  std::int64_t waited_ns = 0;   // since the first look of this search that found work there
};

// A victim that has run nothing yet is in a task that takes at least the time it was watched. Pure.
[[nodiscard]] constexpr bool pays(const FarLook& look, std::int64_t cost_ns) {
  if (look.words <= 0) return false;
  if (look.waited_ns >= cost_ns) return true;
  // words x (watched / ran) >= cost; in floating point, as it may be a product of large numbers.
  const auto ran = static_cast<double>(std::max<std::uint64_t>(look.ran, 1));
  return static_cast<double>(look.words) * static_cast<double>(look.watched_ns) >=
         static_cast<double>(cost_ns) * ran;
}

// A thief's watch of all its victims. Its own thread only.
class FarWatch {
 public:
  explicit FarWatch(std::size_t victims) : seen_(victims) {}

  // A new search for work.
  void begin() { ++search_; }
  // Whether to take one of the victim's `words`, of which there are some. `ran`: tasks and forks it
  // has run in its life.
  [[nodiscard]] bool pays_now(std::size_t victim, std::int64_t words, std::uint64_t ran,
                              std::int64_t now_ns, std::int64_t cost_ns) {
    Seen& seen = seen_[victim];
    if (std::exchange(seen.search, search_) != search_) seen.found_ns = now_ns;
    if (seen.since_ns == kNever || now_ns - seen.since_ns > kOldNs) {
      seen.since_ns = now_ns;
      seen.ran = ran;
    }
    return pays({words, now_ns - seen.since_ns, ran - seen.ran, now_ns - seen.found_ns}, cost_ns);
  }
  // The victim had nothing: the watch begins with the next work.
  void nothing_at(std::size_t victim) { seen_[victim] = {}; }

 private:
  static constexpr std::int64_t kNever = -1;
  // A victim may run other tasks by then.
  static constexpr std::int64_t kOldNs = 1'000'000;
  struct Seen {
    std::uint64_t search = 0;
    std::int64_t found_ns = 0;
    std::int64_t since_ns = kNever;
    std::uint64_t ran = 0;
  };
  std::uint64_t search_ = 0;
  std::vector<Seen> seen_;
};

}  // namespace atl::runtime
