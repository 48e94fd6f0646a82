// When a thief goes far: the rule's properties, and what it does on a simulated machine, where far
// steals fall and no program takes longer.
#include "scheduler/far_work.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <queue>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace {

using atl::runtime::FarLook;
using atl::runtime::FarWatch;
using atl::runtime::pays;

TEST(FarWork, CostsRiseWithTheDistance) {
  const atl::runtime::StealCosts costs = atl::runtime::steal_costs({});
  EXPECT_EQ(costs, (atl::runtime::StealCosts{0, 432, 432, 800}));
  EXPECT_EQ(atl::runtime::steal_costs({.remote_chiplet_ns = 50, .remote_node_ns = 400}),
            (atl::runtime::StealCosts{0, 200, 200, 1600}));
}

TEST(FarWork, PaysIfTheVictimNeedsLongerThanTheLines) {
  // 10 tasks ran in 1000 ns: 100 ns each.
  EXPECT_FALSE(pays({.words = 7, .watched_ns = 1000, .ran = 10, .waited_ns = 0}, 800));
  EXPECT_TRUE(pays({.words = 8, .watched_ns = 1000, .ran = 10, .waited_ns = 0}, 800));
  // None ran: the one that runs takes 1000 ns at least.
  EXPECT_TRUE(pays({.words = 1, .watched_ns = 1000, .ran = 0, .waited_ns = 0}, 800));
  EXPECT_FALSE(pays({.words = 1, .watched_ns = 700, .ran = 0, .waited_ns = 0}, 800));
  // It has waited for as long as the steal takes.
  EXPECT_TRUE(pays({.words = 1, .watched_ns = 800, .ran = 1000, .waited_ns = 800}, 800));
  EXPECT_FALSE(pays({.words = 0, .watched_ns = 1'000'000'000, .ran = 0, .waited_ns = 0}, 800))
      << "nothing is there";
}

TEST(FarWork, OfMoreWorkOrLongerTasksOrAShorterWayItPaysNoLess) {
  std::mt19937_64 random(1);
  const auto below = [&](std::uint64_t most) { return static_cast<std::int64_t>(random() % most); };
  for (int run = 0; run < 100'000; ++run) {
    const FarLook look{1 + below(1000), below(100'000), static_cast<std::uint64_t>(below(10'000)),
                       below(5000)};
    const std::int64_t cost = below(5000);
    if (!pays(look, cost)) continue;
    const auto [words, watched, ran, waited] = look;
    EXPECT_TRUE(pays({words + below(1000), watched, ran, waited}, cost));
    EXPECT_TRUE(pays({words, watched + below(100'000), ran, waited}, cost));
    EXPECT_TRUE(pays({words, watched, ran / 2, waited}, cost));
    EXPECT_TRUE(pays({words, watched, ran, waited + below(5000)}, cost));
    EXPECT_TRUE(pays(look, cost / 2));
  }
}

// Whatever the victim does: work that stays is taken within the patience, and one look more.
TEST(FarWork, NothingStarves) {
  std::mt19937_64 random(1);
  for (int run = 0; run < 10'000; ++run) {
    const auto cost = static_cast<std::int64_t>(1 + random() % 5000);
    FarWatch watch(3);
    watch.begin();
    std::int64_t now = static_cast<std::int64_t>(random() % 1'000'000);
    std::uint64_t ran = random() % 1000;
    const std::int64_t begun = now;
    std::int64_t last = now;
    while (!watch.pays_now(2, 1, ran, now, cost)) {
      ASSERT_LT(last - begun, cost);
      last = now;
      now += static_cast<std::int64_t>(random() % 2000);
      ran += random() % 1'000'000;
    }
  }
}

TEST(FarWork, AWatchRemembersTheRateAndNotTheWait) {
  FarWatch watch(2);
  watch.begin();
  EXPECT_FALSE(watch.pays_now(0, 5, 0, 1000, 800)) << "the first look";
  EXPECT_FALSE(watch.pays_now(1, 5, 0, 5000, 800)) << "each victim has its own";
  EXPECT_FALSE(watch.pays_now(0, 5, 10, 1700, 800)) << "5 x 70 ns";
  EXPECT_TRUE(watch.pays_now(0, 5, 20, 1800, 800)) << "it has waited";
  watch.begin();
  EXPECT_FALSE(watch.pays_now(0, 5, 20, 2000, 800)) << "5 x 50 ns";
  EXPECT_TRUE(watch.pays_now(0, 16, 20, 2000, 800)) << "16 x 50 ns";
  watch.nothing_at(0);
  EXPECT_FALSE(watch.pays_now(0, 16, 20, 2100, 800)) << "the work is new";
  EXPECT_TRUE(watch.pays_now(0, 16, 20, 2200, 800)) << "16 x 100 ns at least";
}

// A machine of 2 nodes, 4 chiplets of 4 cores in each, a worker on each core. A task is a number:
// it pushes tasks of all smaller numbers, works, and takes what is left of them, newest first,
// which is what a tree of forks does; a task 0 only works. A look at a victim costs its worker
// nothing and the thief a line; a steal costs the thief the way, and the victim a line, as its
// deque goes there and back. Time is in ns.
class Machine {
 public:
  struct Result {
    std::int64_t makespan_ns = 0;
    long far = 0;
  };

  Machine(bool rule, std::int64_t task_ns, std::uint64_t seed)
      : rule_(rule), task_ns_(task_ns), random_(seed) {
    for (int rank = 0; rank < kWorkers; ++rank) events_.push({0, rank});
  }

  Result run(const std::vector<int>& tasks) {
    for (const int task : tasks) push(0, task);
    while (left_ > 0) {
      const auto [now, rank] = events_.top();
      events_.pop();
      events_.push({now + step(rank, now), rank});
    }
    for (const Worker& worker : workers_) {
      result_.makespan_ns = std::max(result_.makespan_ns, worker.ended_ns);
    }
    return result_;
  }

 private:
  static constexpr int kWorkers = 32;
  static constexpr int kOfAChiplet = 4;
  static constexpr int kOfANode = 16;
  static constexpr std::int64_t kRoundNs = 700;  // the pause between two rounds

  struct Worker {
    std::deque<int> words;
    std::uint64_t ran = 0;
    std::int64_t delay_ns = 0;  // that thieves have caused
    std::int64_t ended_ns = 0;
    bool searches = false;
    FarWatch watch{kWorkers};
  };

  // Ranks of workers, among them all that are so far from a thief.
  struct Ring {
    atl::Distance distance;
    int begin;
    int count;
  };

  static atl::Distance distance(int one, int other) {
    if (one / kOfAChiplet == other / kOfAChiplet) return atl::Distance::chiplet;
    return one / kOfANode == other / kOfANode ? atl::Distance::node : atl::Distance::elsewhere;
  }
  static std::int64_t line_ns(atl::Distance distance) {
    return distance == atl::Distance::chiplet ? 23 : distance == atl::Distance::node ? 108 : 200;
  }

  Worker& of(int rank) { return workers_[static_cast<std::size_t>(rank)]; }

  void push(int rank, int task) {
    of(rank).words.push_back(task);
    ++left_;
  }

  // What a worker does next; returns how long that takes.
  std::int64_t step(int rank, std::int64_t now) {
    Worker& self = of(rank);
    if (!self.words.empty()) {
      const int task = self.words.back();
      self.words.pop_back();
      return run_task(rank, task, now);
    }
    if (!std::exchange(self.searches, true)) self.watch.begin();
    return search(rank, now);
  }

  std::int64_t run_task(int rank, int task, std::int64_t now) {
    Worker& self = of(rank);
    self.searches = false;
    --left_;
    ++self.ran;
    for (int child = task - 1; child >= 0; --child) push(rank, child);
    const std::int64_t took = task_ns_ + std::exchange(self.delay_ns, 0);
    self.ended_ns = now + took;
    return took;
  }

  std::int64_t search(int rank, std::int64_t now) {
    const int chiplet = rank / kOfAChiplet * kOfAChiplet;
    const int node = rank / kOfANode * kOfANode;
    const std::array<Ring, 3> rings{{{atl::Distance::chiplet, chiplet, kOfAChiplet},
                                     {atl::Distance::node, node, kOfANode},
                                     {atl::Distance::elsewhere, kOfANode - node, kOfANode}}};
    for (const auto& [ring, begin, count] : rings) {
      const int first = static_cast<int>(random_() % kOfANode);
      for (int at = 0; at < count; ++at) {
        const int victim = begin + (first + at) % count;
        if (victim == rank || distance(rank, victim) != ring) continue;
        if (takes(rank, victim, ring, now)) {
          const std::int64_t way = cost(ring) + 4 * line_ns(atl::Distance::chiplet);
          const int task = of(victim).words.front();
          of(victim).words.pop_front();
          of(victim).delay_ns += line_ns(ring);
          if (ring != atl::Distance::chiplet) ++result_.far;
          return way + run_task(rank, task, now + way);
        }
      }
    }
    return kRoundNs;
  }

  bool takes(int rank, int victim, atl::Distance ring, std::int64_t now) {
    const Worker& other = of(victim);
    FarWatch& watch = of(rank).watch;
    const auto number = static_cast<std::size_t>(victim);
    if (other.words.empty()) {
      watch.nothing_at(number);
      return false;
    }
    if (!rule_ || cost(ring) == 0) return true;
    return watch.pays_now(number, std::ssize(other.words), other.ran, now, cost(ring));
  }

  std::int64_t cost(atl::Distance ring) const { return costs_[static_cast<std::size_t>(ring)]; }

  const bool rule_;
  const std::int64_t task_ns_;
  const atl::runtime::StealCosts costs_ = atl::runtime::steal_costs({});
  std::mt19937_64 random_;
  std::array<Worker, kWorkers> workers_;
  using Event = std::pair<std::int64_t, int>;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  long left_ = 0;
  Result result_;
};

struct Compared {
  Machine::Result without;
  Machine::Result with;
};

// Means of some runs.
Compared compared(std::int64_t task_ns, const std::vector<int>& tasks) {
  constexpr int kRuns = 5;
  Compared sum;
  for (int seed = 1; seed <= kRuns; ++seed) {
    for (const bool rule : {false, true}) {
      const Machine::Result one =
          Machine(rule, task_ns, static_cast<std::uint64_t>(seed)).run(tasks);
      Machine::Result& all = rule ? sum.with : sum.without;
      all.makespan_ns += one.makespan_ns / kRuns;
      all.far += one.far;
    }
  }
  return sum;
}

TEST(FarWork, OnTheSimulatedMachineFewerStealsOfTreesAreFarAndNothingTakesLonger) {
  for (const std::int64_t task_ns : {20, 100, 500, 2000, 20'000}) {
    std::int64_t without_ns = 0;
    std::int64_t with_ns = 0;
    for (const auto& [name, tasks, tree] :
         {std::tuple("tree of 4096", std::vector<int>{12}, true),
          std::tuple("tree of 16384", std::vector<int>{14}, true),
          std::tuple("4 at once", std::vector<int>(4, 0), false),
          std::tuple("40 at once", std::vector<int>(40, 0), false),
          std::tuple("2000 at once", std::vector<int>(2000, 0), false)}) {
      const auto [without, with] = compared(task_ns, tasks);
      const std::string what = std::string(name) + " of " + std::to_string(task_ns) + " ns";
      // The look that takes nothing costs a round of a search; a small tree feels it.
      EXPECT_LE(with.makespan_ns, without.makespan_ns + without.makespan_ns / 16 + 700) << what;
      EXPECT_LE(with.far, without.far) << what;
      EXPECT_TRUE(!tree || task_ns > 500 || 3 * with.far < 2 * without.far) << what;
      without_ns += without.makespan_ns;
      with_ns += with.makespan_ns;
    }
    EXPECT_LE(with_ns, without_ns + without_ns / 50) << task_ns;
  }
}

}  // namespace
