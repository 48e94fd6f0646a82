// The work behind sssp.hpp, for distances of 4 or 8 bytes.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "graph/near_edges.hpp"
#include "graph/sssp.hpp"
#include "team.hpp"

namespace atl::kernels {

// Words that workers write at the same time are read and written relaxed. What a worker misses of
// another's write makes it relax an edge in vain, no more: whoever lowers a distance appends the
// vertex to a bucket, and the loops order the buckets.
template <class Distance>
class DeltaStepping {
 public:
  DeltaStepping(Team& team, const Graph& graph, std::uint64_t delta, std::span<Distance> distance)
      : team_(team),
        graph_(graph),
        delta_(delta),
        distance_(distance),
        workers_(static_cast<std::size_t>(team.workers())) {}

  // False if a distance does not fit.
  bool run(Vertex source) {
    team_.loop(distance_.size(), 0, [&](std::size_t first, std::size_t last) {
      std::fill(&distance_[first], &distance_[first] + (last - first), kFar<Distance>);
    });
    distance_[source] = 0;
    open_window(0, kFirstBuckets * delta_);
    workers_[0].buckets[0].push_back(source);
    for (;;) {
      settle_window();
      if (too_far_.load(std::memory_order_relaxed) || end_ > kMost) return false;
      const Waiting waiting = take_waiting();
      if (waiting.vertices == 0) return true;
      if (waiting.edges > graph_.out.to.size() / 2 && pull_pays()) {
        pull();
        settle_window();
        return !too_far_.load(std::memory_order_relaxed);
      }
      const std::uint64_t settled = end_;
      const std::uint64_t width = end_ - begin_;
      const bool wider = waiting.edges > graph_.out.to.size() / 4;
      open_window(std::max(end_, waiting.nearest), wider ? 2 * width : width);
      if (end_ > kMost) return false;
      expand_waiting(waiting.vertices, settled);
    }
  }

 private:
  // Tuned on Kronecker graphs of scale 20 and 22 with 2 workers.
  static constexpr std::uint64_t kFirstBuckets = 16;  // of the first window
  static constexpr std::uint64_t kMostBuckets = 4096;
  static constexpr std::uint64_t kLastBuckets = 256;  // after pulling
  static constexpr std::uint64_t kLastWider = 128;
  static constexpr std::ptrdiff_t kAhead = 4;  // rows that are fetched ahead
  static constexpr std::size_t kFew = 64;      // vertices that one worker expands
  static constexpr std::size_t kGrain = 32;

  static constexpr std::uint64_t kLongestEdge = std::numeric_limits<Weight>::max();
  // Distances up to this can be added a weight to.
  static constexpr std::uint64_t kMost = kFar<Distance> - 1 - kLongestEdge;

  struct alignas(128) Worker {
    std::vector<std::vector<Vertex>> buckets;
    std::vector<Vertex> waiting;  // those that have edges which end beyond the window
    std::uint64_t waiting_edges = 0;
    std::uint64_t nearest = kFar<std::uint64_t>;  // where the first of these edges ends
    std::vector<Vertex> taken;                    // of either, to be expanded now
  };
  struct Waiting {
    std::size_t vertices = 0;
    std::uint64_t edges = 0;
    std::uint64_t nearest = kFar<std::uint64_t>;
  };

  [[nodiscard]] std::uint64_t load(Vertex v) const {
    return std::atomic_ref(distance_[v]).load(std::memory_order_relaxed);
  }
  Worker& own() { return workers_[static_cast<std::size_t>(team_.rank())]; }

  void open_window(std::uint64_t begin, std::uint64_t width) {
    begin_ = begin;
    end_ = begin + width;
    step_ = std::max(delta_, (width + kMostBuckets - 1) / kMostBuckets);
    open_buckets((width + step_ - 1) / step_);
  }
  void open_buckets(std::uint64_t buckets) {
    buckets_ = buckets;
    for (Worker& worker : workers_) worker.buckets.resize(buckets);
  }
  // The last bucket of the last window has no end.
  [[nodiscard]] std::size_t bucket_of(std::uint64_t distance) const {
    return std::min((distance - begin_) / step_, buckets_ - 1);
  }

  void settle_window() {
    for (std::size_t bucket = 0; bucket < buckets_; ++bucket) {
      for (;;) {
        std::size_t all = 0;
        for (Worker& worker : workers_) {
          worker.taken.clear();
          worker.taken.swap(worker.buckets[bucket]);
          all += worker.taken.size();
        }
        if (all == 0) break;
        expand_taken(all, begin_ + bucket * step_, 0);
      }
    }
  }

  Waiting take_waiting() {
    Waiting all;
    for (Worker& worker : workers_) {
      worker.taken.clear();
      worker.taken.swap(worker.waiting);
      all.vertices += worker.taken.size();
      all.edges += std::exchange(worker.waiting_edges, 0);
      all.nearest = std::min(all.nearest, std::exchange(worker.nearest, kFar<std::uint64_t>));
    }
    return all;
  }
  // The edges that end before `settled` were relaxed in an earlier window.
  void expand_waiting(std::size_t all, std::uint64_t settled) { expand_taken(all, 0, settled); }

  // The taken vertices but those that are nearer than `least`: an earlier bucket had them too.
  void expand_taken(std::size_t all, std::uint64_t least, std::uint64_t settled) {
    const auto piece = [&](std::size_t first, std::size_t last) {
      Worker& mine = own();
      for (const Worker& worker : workers_) {
        const std::size_t size = worker.taken.size();
        if (first < size) {
          expand(mine, std::span(worker.taken).subspan(first, std::min(last, size) - first), least,
                 settled);
        }
        if (last <= size) return;
        first = std::max(first, size) - size;
        last -= size;
      }
    };
    if (all <= kFew) return piece(0, all);
    team_.loop(all, kGrain, piece);
  }

  void expand(Worker& mine, std::span<const Vertex> vertices, std::uint64_t least,
              std::uint64_t settled) {
    const Vertex* const end = vertices.data() + vertices.size();
    for (const Vertex& v : vertices) {
      if (end - &v > 2 * kAhead) {
        __builtin_prefetch(&graph_.out.first[*(&v + 2 * kAhead)]);
        __builtin_prefetch(&distance_[*(&v + 2 * kAhead)]);
      }
      if (end - &v > kAhead) fetch_row(graph_.out, *(&v + kAhead));
      if (const std::uint64_t distance = load(v); distance >= least) {
        expand_one(mine, v, distance, settled);
      }
    }
  }

  static void fetch_row(const Rows& rows, Vertex v) {
    __builtin_prefetch(rows.to.data() + rows.first[v]);
    __builtin_prefetch(rows.weight->data() + rows.first[v]);
  }

  void expand_one(Worker& mine, Vertex v, std::uint64_t distance, std::uint64_t settled) {
    if (distance > kMost) {
      too_far_.store(true, std::memory_order_relaxed);  // read after the loop, which orders it
      return;
    }
    const auto to = graph_.out.of(v);
    const auto weight = graph_.out.weights_of(v);
    const auto limit = static_cast<Weight>(std::min(end_ - 1 - distance, kLongestEdge));
    NearEdges near;
    bool waits = false;
    for (std::size_t at = 0; at < to.size(); at += NearEdges::kMost) {
      const std::size_t count = std::min(NearEdges::kMost, to.size() - at);
      near.pick(&to[at], &weight[at], count, limit);
      if (near.found < count) {
        waits = true;
        mine.nearest = std::min(mine.nearest, distance + static_cast<std::uint64_t>(near.next));
      }
      for (std::size_t edge = 0; edge < near.found; ++edge) {
        __builtin_prefetch(&distance_[near.to[edge]]);
      }
      for (std::size_t edge = 0; edge < near.found; ++edge) {
        const std::uint64_t reached = distance + static_cast<std::uint64_t>(near.weight[edge]);
        if (reached >= settled) relax(mine, near.to[edge], reached);
      }
    }
    if (!waits) return;
    mine.waiting.push_back(v);
    mine.waiting_edges += to.size();
  }

  void relax(Worker& mine, Vertex v, std::uint64_t reached) {
    const std::atomic_ref<Distance> word(distance_[v]);
    Distance before = word.load(std::memory_order_relaxed);
    while (reached < before) {
      if (word.compare_exchange_weak(before, static_cast<Distance>(reached),
                                     std::memory_order_relaxed)) {
        mine.buckets[bucket_of(reached)].push_back(v);
        return;
      }
    }
  }

  // Whether vertices beyond the window have less than a third of the edges.
  bool pull_pays() {
    std::atomic<std::uint64_t> beyond{0};
    team_.loop(graph_.vertices, 0, [&](std::size_t first, std::size_t last) {
      std::uint64_t edges = 0;
      for (auto v = static_cast<Vertex>(first); v < last; ++v) {
        edges += load(v) >= end_ ? graph_.out.degree(v) : 0;
      }
      beyond.fetch_add(edges, std::memory_order_relaxed);
    });
    return beyond.load(std::memory_order_relaxed) < graph_.out.to.size() / 3;
  }

  void pull() {
    const std::uint64_t settled = end_;
    begin_ = end_;
    end_ = std::uint64_t{kFar<Distance>};
    step_ = delta_ * kLastWider;
    open_buckets(kLastBuckets);
    team_.loop(graph_.vertices, 0, [&](std::size_t first, std::size_t last) {
      constexpr std::size_t kBatch = 64;
      Worker& mine = own();
      Vertex batch[kBatch];
      std::size_t count = 0;
      for (auto v = static_cast<Vertex>(first); v < last; ++v) {
        if (load(v) >= settled && graph_.incoming().degree(v) != 0) batch[count++] = v;
        if (count < kBatch && v + 1 < last) continue;
        pull_batch(mine, std::span(batch, count), settled);
        count = 0;
      }
    });
  }

  void pull_batch(Worker& mine, std::span<const Vertex> batch, std::uint64_t settled) {
    constexpr std::size_t kFetched = 16;  // a line of neighbours
    const Rows& rows = graph_.incoming();
    for (const Vertex v : batch) fetch_row(rows, v);
    for (const Vertex v : batch) {
      const auto row = rows.of(v);
      for (const Vertex from : row.first(std::min(row.size(), kFetched))) {
        __builtin_prefetch(&distance_[from]);
      }
    }
    for (const Vertex v : batch) {
      const auto from = rows.of(v);
      const auto weight = rows.weights_of(v);
      std::uint64_t best = load(v);
      bool expands = graph_.in.has_value();
      for (std::size_t at = 0; at < from.size(); ++at) {
        const std::uint64_t distance = load(from[at]);
        if (distance >= settled) {
          expands = true;
        } else {
          best = std::min(best, distance + static_cast<std::uint64_t>(weight[at]));
        }
      }
      if (best == kFar<Distance>) continue;
      std::atomic_ref(distance_[v]).store(static_cast<Distance>(best), std::memory_order_relaxed);
      if (expands) mine.buckets[bucket_of(best)].push_back(v);
    }
  }

  Team& team_;
  const Graph& graph_;
  const std::uint64_t delta_;
  const std::span<Distance> distance_;
  std::vector<Worker> workers_;
  std::atomic<bool> too_far_{false};
  // The window: distances from begin_ to before end_, in buckets that are step_ wide.
  std::uint64_t begin_ = 0;
  std::uint64_t end_ = 0;
  std::uint64_t step_ = 1;
  std::uint64_t buckets_ = 0;
};

}  // namespace atl::kernels
