#include "graph/bfs.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "graph/answer.hpp"
#include "graph/compressed_rows.hpp"
#include "graph/make.hpp"
#include "graph/messages.hpp"
#include "graph/sources.hpp"

namespace atl::kernels {
namespace {

template <class AnyRows>
class BreadthFirst {
 public:
  BreadthFirst(Team& team, const Memory& memory, const GraphOf<AnyRows>& graph,
               std::span<Vertex> parents)
      : team_(team),
        out_(graph.out),
        in_(graph.incoming()),
        parents_(parents),
        words_((parents.size() + kBits - 1) / kBits),
        bits_(make_array<Word>(memory, 3 * words_)),
        queue_(make_array<Vertex>(memory, parents.size())) {
    if (parents.size() % kBits != 0) reached_[words_ - 1] = ~Word{0} << parents.size() % kBits;
  }

  void run(Vertex source) {
    constexpr std::uint64_t kAlpha = 15;
    constexpr std::uint64_t kBeta = 18;
    reached_[source / kBits] |= bit(source);
    parents_[source] = source;
    queue_[0] = source;
    tail_ = 1;
    std::uint64_t unseen = out_.entries();  // edges
    edges_ = out_.degree(source);
    for (std::size_t head = 0; head != tail_;) {
      const std::size_t size = tail_ - head;
      if (edges_ > unseen / kAlpha) {
        enter_bitmap(head);
        std::size_t before = 0;
        std::size_t found = size;
        do {
          before = std::exchange(found, bottom_up());
          std::swap(front_, next_);
        } while (found >= before || found > parents_.size() / kBeta);
        head = tail_;
        enter_queue();
        edges_ = 1;  // the levels to come are small: top-down
      } else {
        unseen -= std::min(unseen, edges_.load());
        head = top_down(head);
      }
    }
    forget_rest();
  }

 private:
  using Word = std::uint64_t;
  static constexpr std::size_t kBits = 64;
  static Word bit(Vertex v) { return Word{1} << v % kBits; }

  // The queue's vertices from `head` claim their neighbours. Returns the next level's begin.
  std::size_t top_down(std::size_t head) {
    constexpr std::size_t kGrain = 16;
    constexpr std::size_t kAhead = 4;
    const std::size_t end = tail_;
    edges_ = 0;
    team_.loop(end - head, kGrain, [&](std::size_t first, std::size_t last) {
      Found found(*this);
      for (std::size_t at = head + first; at < head + last; ++at) {
        if (at + 2 * kAhead < end) out_.fetch_begin(queue_[at + 2 * kAhead]);
        if (at + kAhead < end) out_.fetch(queue_[at + kAhead]);
        const Vertex from = queue_[at];
        each_of(out_, from, [&](Vertex to) {
          // Relaxed: who claims a bit is the only one to write the parent, and nobody reads what
          // others wrote before the level's end.
          const std::atomic_ref<Word> word(reached_[to / kBits]);
          if ((word.load(std::memory_order_relaxed) & bit(to)) != 0) return;
          if ((word.fetch_or(bit(to), std::memory_order_relaxed) & bit(to)) != 0) return;
          parents_[to] = from;
          found.add(to);
        });
      }
    });
    return end;
  }

  // Vertices that have not been reached look for a neighbour in the frontier. Returns how many
  // have found one; they are `next_`.
  std::size_t bottom_up() {
    constexpr std::size_t kGrain = 64;
    std::atomic<std::size_t> all{0};
    team_.loop(words_, kGrain, [&](std::size_t first, std::size_t last) {
      const Word* const front = front_;
      std::size_t count = 0;
      for (std::size_t at = first; at < last; ++at) {
        if (at + 1 < last) {
          for (Word rest = ~reached_[at + 1]; rest != 0; rest &= rest - 1) {
            in_.fetch(static_cast<Vertex>((at + 1) * kBits + std::countr_zero(rest)));
          }
        }
        Word found = 0;
        Word alone = 0;
        for (Word rest = ~reached_[at]; rest != 0; rest &= rest - 1) {
          const auto v = static_cast<Vertex>(at * kBits + std::countr_zero(rest));
          if (in_.degree(v) == 0) {
            alone |= rest & -rest;
            parents_[v] = kNone;
            continue;
          }
          const bool reaches = in_.until(v, [&](std::span<const Vertex> row) {
            for (const Vertex to : row) {
              if ((front[to / kBits] & bit(to)) == 0) continue;
              parents_[v] = to;
              return true;
            }
            return false;
          });
          if (reaches) found |= rest & -rest;
        }
        next_[at] = found;
        reached_[at] |= found | alone;
        count += static_cast<std::size_t>(std::popcount(found));
      }
      all.fetch_add(count, std::memory_order_relaxed);
    });
    return all;
  }

  void enter_bitmap(std::size_t head) {
    std::fill_n(front_, words_, Word{0});
    team_.loop(tail_ - head, 4096, [&](std::size_t first, std::size_t last) {
      for (std::size_t at = head + first; at < head + last; ++at) {
        std::atomic_ref<Word>(front_[queue_[at] / kBits])
            .fetch_or(bit(queue_[at]), std::memory_order_relaxed);
      }
    });
  }

  void enter_queue() {
    team_.loop(words_, 256, [&](std::size_t first, std::size_t last) {
      Found found(*this);
      for (std::size_t at = first; at < last; ++at) {
        for (Word rest = front_[at]; rest != 0; rest &= rest - 1) {
          found.add(static_cast<Vertex>(at * kBits + std::countr_zero(rest)));
        }
      }
    });
  }

  void forget_rest() {
    team_.loop(words_, 256, [&](std::size_t first, std::size_t last) {
      for (std::size_t at = first; at < last; ++at) {
        for (Word rest = ~reached_[at]; rest != 0; rest &= rest - 1) {
          parents_[at * kBits + std::countr_zero(rest)] = kNone;
        }
      }
    });
  }

  // What a piece puts in the queue, moved there many at a time.
  class Found {
   public:
    explicit Found(BreadthFirst& search) : search_(search) {}
    ~Found() { flush(); }
    Found(const Found&) = delete;
    Found& operator=(const Found&) = delete;
    void add(Vertex v) {
      vertices_[size_++] = v;
      edges_ += search_.out_.degree(v);
      if (size_ == std::size(vertices_)) flush();
    }

   private:
    void flush() {
      const std::size_t to = search_.tail_.fetch_add(size_, std::memory_order_relaxed);
      std::copy_n(vertices_, size_, search_.queue_.data() + to);
      search_.edges_.fetch_add(edges_, std::memory_order_relaxed);
      size_ = 0;
      edges_ = 0;
    }
    BreadthFirst& search_;
    std::size_t size_ = 0;
    std::uint64_t edges_ = 0;
    Vertex vertices_[512];
  };

  Team& team_;
  const AnyRows& out_;
  const AnyRows& in_;
  const std::span<Vertex> parents_;
  const std::size_t words_;
  Array<Word> bits_;
  Word* const reached_ = bits_.data();
  Word* front_ = reached_ + words_;
  Word* next_ = front_ + words_;
  Array<Vertex> queue_;  // all levels that were found top-down, one after the other
  std::atomic<std::size_t> tail_{0};
  std::atomic<std::uint64_t> edges_{0};  // of the queue's last level
};

}  // namespace

template <class AnyRows>
void bfs(Team& team, const Memory& memory, const GraphOf<AnyRows>& graph, Vertex source,
         std::span<Vertex> parents) {
  BreadthFirst<AnyRows>(team, memory, graph, parents).run(source);
}

template <class AnyRows>
void bfs_by_messages(Team& team, const GraphOf<AnyRows>& graph, Vertex source,
                     std::span<Vertex> parents) {
  team.loop(parents.size(), 0, [&](std::size_t first, std::size_t last) {
    std::fill(parents.begin() + first, parents.begin() + last, kNone);
  });
  parents[source] = source;
  propagate<Vertex>(
      team, graph.vertices, std::span(&source, 1),
      [&](Vertex v, auto&& send) { each_of(graph.out, v, [&](Vertex to) { send(to, v); }); },
      [&](Vertex v, Vertex from) {
        if (parents[v] != kNone) return false;
        parents[v] = from;
        return true;
      });
}

template <class AnyRows>
Reached verify_bfs(const GraphOf<AnyRows>& graph, Vertex source, std::span<const Vertex> parents) {
  const auto fail = [](Vertex v, const std::string& why) {
    throw WrongAnswer("bfs: vertex " + std::to_string(v) + " " + why);
  };
  std::vector<Vertex> depth(graph.vertices, kNone);
  std::vector<bool> joined(graph.vertices);  // by an edge from the parent
  std::vector<Vertex> queue = {source};
  Reached reached;
  depth[source] = 0;
  for (std::size_t at = 0; at < queue.size(); ++at) {
    const Vertex from = queue[at];
    reached.edges += graph.out.degree(from);
    each_of(graph.out, from, [&](Vertex to) {
      if (parents[to] == from) joined[to] = true;
      if (depth[to] != kNone) return;
      depth[to] = depth[from] + 1;
      queue.push_back(to);
    });
  }
  reached.vertices = queue.size();
  if (parents[source] != source) fail(source, "is the source and has another parent");
  for (Vertex v = 0; v < graph.vertices; ++v) {
    const Vertex parent = parents[v];
    if (v == source || (parent == kNone && depth[v] == kNone)) continue;
    if (parent == kNone) fail(v, "has no parent and can be reached");
    if (depth[v] == kNone) fail(v, "has a parent and cannot be reached");
    if (parent >= graph.vertices) fail(v, "has a parent that is no vertex");
    if (depth[parent] != kNone && !joined[v]) fail(v, "has no edge from its parent");
    if (depth[parent] + 1 != depth[v]) fail(v, "is not one step behind its parent");
  }
  return reached;
}

#define INSTANTIATE(AnyRows)                                                                   \
  template void bfs(Team&, const Memory&, const GraphOf<AnyRows>&, Vertex, std::span<Vertex>); \
  template void bfs_by_messages(Team&, const GraphOf<AnyRows>&, Vertex, std::span<Vertex>);    \
  template Reached verify_bfs(const GraphOf<AnyRows>&, Vertex, std::span<const Vertex>);
INSTANTIATE(Rows)
INSTANTIATE(CompressedRows)
#undef INSTANTIATE

namespace {

constexpr GraphNeeds kBfsNeeds = {
    .incoming = true, .compressible = true, .of_vertex = 32, .of_message = 16};

template <class AnyRows>
Result run_bfs(Team& team, const Settings& settings, Conditions& conditions,
               const GraphOf<AnyRows>& graph) {
  std::optional<Array<Vertex>> parents;
  Vertex source = 0;
  Reached last;
  double edges = 0;
  time_runs(
      conditions,
      [&](int run) {
        source = pick_source(graph, conditions.seed, run);
        parents.reset();
      },
      [&](int) {
        parents.emplace(make_array<Vertex>(conditions.memory, graph.vertices));
        const std::span<Vertex> made(parents->data(), parents->size());
        if (settings.text("variant") == "messages") {
          bfs_by_messages(team, graph, source, made);
        } else {
          bfs(team, conditions.memory, graph, source, made);
        }
      },
      [&](int) {
        last = verify_bfs(graph, source, {parents->data(), parents->size()});
        edges += static_cast<double>(last.edges);
      });
  save_answer(settings, graph.vertices, [&](Vertex v, std::string& line) {
    line += (*parents)[v] == kNone ? "-" : std::to_string((*parents)[v]);
  });
  const double runs = conditions.runs;
  return {.work = edges / (graph.in ? runs : 2 * runs),
          .figures = {{"vertices", static_cast<double>(graph.vertices)},
                      {"edges", static_cast<double>(graph.edges)},
                      {"bytes_per_entry", bytes_per_entry(graph)},
                      {"source", static_cast<double>(source)},
                      {"reached_vertices", static_cast<double>(last.vertices)}}};
}

}  // namespace

const Workload& bfs_workload() {
  static const Workload workload = {
      "bfs",
      "breadth-first search from random vertices, direction-optimising",
      "edges",
      with_save(with_variant(graph_parameters(kBfsNeeds))),
      [](const Settings& settings, int) { return graph_bytes(settings, kBfsNeeds); },
      [](Team& team, const Settings& settings, Conditions& conditions) {
        return on_rows(team, settings, conditions, kBfsNeeds, [&](const auto& graph) {
          return run_bfs(team, settings, conditions, graph);
        });
      },
  };
  return workload;
}

}  // namespace atl::kernels
