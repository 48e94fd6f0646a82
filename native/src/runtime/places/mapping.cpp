#include "atoll/runtime/mapping.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>

namespace atl {
namespace {

struct Chiplet {
  int index = 0;
  int package = 0;
  std::vector<int> cores;
};

struct Node {
  std::vector<Chiplet> chiplets;  // largest first
};

using Chiplets = std::vector<const Chiplet*>;

int size_of(const Chiplet& chiplet) { return static_cast<int>(chiplet.cores.size()); }

int cores_of(const Chiplets& chiplets) {
  return std::transform_reduce(chiplets.begin(), chiplets.end(), 0, std::plus<>(),
                               [](const Chiplet* chiplet) { return size_of(*chiplet); });
}

// The nodes in the order in which they are used (mapping.hpp). A node may contain several packages
// (AMD's NPS0): its place is that of its first package, and it keeps their chiplets together.
std::vector<Node> nodes_in_order(const Places& places) {
  std::vector<Chiplet> chiplets(static_cast<std::size_t>(places.chiplets()));
  std::map<int, int> cores_in_package;
  std::map<int, int> cores_in_node;
  std::map<int, int> package_of_node;
  std::map<int, std::vector<Chiplet>> by_node;
  for (std::size_t i = 0; i < places.cores.size(); ++i) {
    const Core& core = places.cores[i];
    Chiplet& chiplet = chiplets[static_cast<std::size_t>(core.chiplet)];
    chiplet.index = core.chiplet;
    chiplet.package = core.package;
    chiplet.cores.push_back(static_cast<int>(i));
    ++cores_in_package[core.package];
    ++cores_in_node[core.node];
    package_of_node.emplace(core.node, core.package);
  }
  for (Chiplet& chiplet : chiplets) {
    const Core& core = places.cores[static_cast<std::size_t>(chiplet.cores.front())];
    by_node[core.node].push_back(std::move(chiplet));
  }
  const auto package_rank = [&](int package) {
    return std::pair(-cores_in_package.at(package), package);
  };
  std::vector<int> order = places.nodes();
  std::ranges::sort(order, {}, [&](int node) {
    return std::tuple(package_rank(package_of_node.at(node)), -cores_in_node.at(node), node);
  });
  std::vector<Node> nodes;
  for (const int node : order) {
    std::vector<Chiplet>& inside = by_node.at(node);
    std::ranges::sort(inside, {}, [&](const Chiplet& chiplet) {
      return std::tuple(package_rank(chiplet.package), -size_of(chiplet), chiplet.index);
    });
    nodes.push_back({std::move(inside)});
  }
  return nodes;
}

// For every number of chiplets the choice with the most cores among those that use all nodes fully
// except one: a knapsack over the nodes, of which one may be used in part. O(chiplets^2).
class LargestChoice {
 public:
  explicit LargestChoice(const std::vector<Node>& nodes) {
    for (const Node& node : nodes) {
      Chiplets& sorted = by_size_.emplace_back();
      for (const Chiplet& chiplet : node.chiplets) sorted.push_back(&chiplet);
      std::ranges::stable_sort(sorted, std::greater<>(),
                               [](const Chiplet* chiplet) { return size_of(*chiplet); });
      total_ += sorted.size();
    }
    cores_[kWhole].assign(total_ + 1, kNone);
    cores_[kParted].assign(total_ + 1, kNone);
    cores_[kWhole][0] = 0;
    for (const Chiplets& node : by_size_) add(node);
  }

  [[nodiscard]] int cores(std::size_t count) const {
    return std::max(cores_[kWhole][count], cores_[kParted][count]);
  }

  // The node taken in part comes last.
  [[nodiscard]] Chiplets chiplets(std::size_t count) const {
    std::size_t state = cores_[kWhole][count] >= cores_[kParted][count] ? kWhole : kParted;
    std::vector<std::size_t> taken(by_size_.size());
    for (std::size_t node = by_size_.size(); node-- > 0;) {
      taken[node] = taken_[node][state][count];
      count -= taken[node];
      if (taken[node] > 0 && taken[node] < by_size_[node].size()) state = kWhole;
    }
    Chiplets chosen;
    Chiplets part;
    for (std::size_t node = 0; node < by_size_.size(); ++node) {
      Chiplets& into = taken[node] < by_size_[node].size() ? part : chosen;
      into.insert(into.end(), by_size_[node].begin(),
                  by_size_[node].begin() + static_cast<std::ptrdiff_t>(taken[node]));
    }
    chosen.insert(chosen.end(), part.begin(), part.end());
    return chosen;
  }

 private:
  static constexpr int kNone = -1;           // no choice has this number of chiplets
  static constexpr std::size_t kWhole = 0;   // all nodes so far were taken whole or not at all
  static constexpr std::size_t kParted = 1;  // one was taken in part

  void add(const Chiplets& node) {
    const auto before = cores_;
    auto& taken = taken_.emplace_back();
    taken.fill(std::vector<std::size_t>(total_ + 1));
    int inside = 0;
    for (std::size_t take = 1; take <= node.size(); ++take) {
      inside += size_of(*node[take - 1]);
      for (std::size_t state = kWhole; state <= kParted; ++state) {
        const bool part = take < node.size();
        if (part && state == kParted) continue;
        const std::size_t next = part ? kParted : state;
        for (std::size_t count = take; count <= total_; ++count) {
          const int rest = before[state][count - take];
          if (rest == kNone || rest + inside <= cores_[next][count]) continue;
          cores_[next][count] = rest + inside;
          taken[next][count] = take;
        }
      }
    }
  }

  std::vector<Chiplets> by_size_;
  std::size_t total_ = 0;
  std::array<std::vector<int>, 2> cores_;                       // [state][count]
  std::vector<std::array<std::vector<std::size_t>, 2>> taken_;  // [node][state][count]
};

void check_threads(const Places& places, int threads) {
  if (threads < 1) throw RuntimeFault(std::to_string(threads) + " threads: at least 1 is needed");
  if (threads > static_cast<int>(places.cores.size())) {
    throw RuntimeFault(std::to_string(threads) + " threads do not fit on " +
                       std::to_string(places.cores.size()) +
                       " cores; map as many as there are cores");
  }
}

int least_spread(const LargestChoice& choice, int threads) {
  std::size_t spread = 1;  // ends: all chiplets together hold them
  while (choice.cores(spread) < threads) ++spread;
  return static_cast<int>(spread);
}

Chiplets choose(const std::vector<Node>& nodes, int threads, int count) {
  Chiplets first;
  for (const Node& node : nodes) {
    for (const Chiplet& chiplet : node.chiplets) {
      if (static_cast<int>(first.size()) < count) first.push_back(&chiplet);
    }
  }
  if (cores_of(first) >= threads) return first;
  const LargestChoice choice(nodes);
  const int most = choice.cores(static_cast<std::size_t>(count));
  if (most < threads) {
    throw RuntimeFault(std::to_string(threads) + " threads do not fit on " + std::to_string(count) +
                       " chiplet(s), which hold " + std::to_string(most) +
                       "; the smallest spread that holds them is " +
                       std::to_string(least_spread(choice, threads)));
  }
  return choice.chiplets(static_cast<std::size_t>(count));
}

// The number of threads of each chiplet: one in turn, while it has a core left.
std::vector<int> shares(const Chiplets& chiplets, int threads) {
  std::vector<int> share(chiplets.size());
  for (std::size_t at = 0; threads > 0; at = (at + 1) % chiplets.size()) {
    if (share[at] == size_of(*chiplets[at])) continue;
    ++share[at];
    --threads;
  }
  return share;
}

}  // namespace

std::vector<int> spread_cores(const Places& places, int threads, int spread) {
  check_threads(places, threads);
  if (spread < 1 || spread > places.chiplets()) {
    throw RuntimeFault("spread " + std::to_string(spread) + ": it must be from 1 to " +
                       std::to_string(places.chiplets()) + ", the number of chiplets");
  }
  const std::vector<Node> nodes = nodes_in_order(places);
  const Chiplets chosen = choose(nodes, threads, std::min(spread, threads));
  const std::vector<int> share = shares(chosen, threads);
  std::vector<int> cores;
  for (std::size_t at = 0; at < chosen.size(); ++at) {
    const std::vector<int>& own = chosen[at]->cores;
    cores.insert(cores.end(), own.begin(), own.begin() + share[at]);
  }
  return cores;
}

int min_spread(const Places& places, int threads) {
  check_threads(places, threads);
  const std::vector<Node> nodes = nodes_in_order(places);
  return least_spread(LargestChoice(nodes), threads);
}

}  // namespace atl
