// Static placement with batched messages, in the manner of RING (Meng and Tan, "RING: NUMA-aware
// Message-batching Runtime for Data-intensive Applications", 2017), ARCAS's baseline: --variant
// messages of the graph kernels. RING's code is not public; this is its scheme, not its program.
//
// Each worker owns an even range of the vertices, for good, and is the only one to read or write
// their values. An update of another's vertex is a message. A superstep has two halves: all workers
// produce, with a batch for each pair of workers; then each takes the batches for its vertices, in
// order of sender. So no update is atomic, random writes stay in the owner's part, and only batches
// cross chiplets, in order of address. The price: a worker with more than its share of the edges
// makes all others wait, as nothing is stolen.
//
// Cost: for each edge that crosses parts a message written and read once. The batches of a
// superstep are all in memory: 8 bytes for each of its messages, 16 with distances.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "graph/graph.hpp"
#include "team.hpp"
#include "workload.hpp"

namespace atl::kernels {

// `parameters` and --variant.
[[nodiscard]] inline std::vector<Parameter> with_variant(std::vector<Parameter> parameters) {
  parameters.push_back({"variant",
                        "shared",
                        "workers share the vertices, or own some and send messages",
                        0,
                        0,
                        {"shared", "messages"}});
  return parameters;
}

template <class Value>
class Mailboxes {
 public:
  Mailboxes(Team& team, Vertex vertices)
      : team_(team),
        workers_(static_cast<std::size_t>(team.workers())),
        vertices_(vertices),
        share_(static_cast<Vertex>(std::max<std::size_t>((vertices + workers_ - 1) / workers_, 1))),
        batches_(workers_ * workers_) {}

  // The vertices of a worker: from the first to before the second.
  [[nodiscard]] std::pair<Vertex, Vertex> part(int rank) const {
    const auto first = static_cast<std::size_t>(rank) * share_;
    return {static_cast<Vertex>(std::min<std::size_t>(first, vertices_)),
            static_cast<Vertex>(std::min<std::size_t>(first + share_, vertices_))};
  }
  [[nodiscard]] int owner(Vertex v) const { return static_cast<int>(v / share_); }

  // A superstep. produce(rank, send) calls send(vertex, value), and take(rank, vertex, value) is
  // called by the vertex's owner; for its own vertices at once, while it still produces.
  template <class Produce, class Take>
  void step(Produce&& produce, Take&& take) {
    team_.each([&](int rank) {
      Batch* const mine = &batches_[static_cast<std::size_t>(rank) * workers_];
      produce(rank, [&](Vertex to, Value value) {
        const int owner = this->owner(to);
        if (owner == rank) return take(rank, to, value);
        mine[owner].messages.push_back({to, value});
      });
    });
    team_.each([&](int rank) {
      for (std::size_t from = 0; from < workers_; ++from) {
        auto& messages = batches_[from * workers_ + static_cast<std::size_t>(rank)].messages;
        for (const auto& [to, value] : messages) take(rank, to, value);
        messages.clear();
      }
    });
  }

 private:
  struct Message {
    Vertex to;
    Value value;
  };
  struct alignas(128) Batch {
    std::vector<Message> messages;
  };

  Team& team_;
  const std::size_t workers_;
  const Vertex vertices_;
  const Vertex share_;
  std::vector<Batch> batches_;  // by sender, then by receiver
};

// Supersteps until nothing changes: expand(v, send) tells the neighbours of a vertex that has
// changed, beginning with those of `begin`, and combine(v, value) puts what comes into the
// value of a vertex and says whether that has changed.
template <class Value, class Expand, class Combine>
void propagate(Team& team, Vertex vertices, std::span<const Vertex> begin, Expand&& expand,
               Combine&& combine) {
  struct alignas(128) Changed {
    std::vector<Vertex> now;
    std::vector<Vertex> next;
  };
  Mailboxes<Value> mail(team, vertices);
  std::vector<Changed> changed(static_cast<std::size_t>(team.workers()));
  std::vector<std::uint8_t> waits(vertices, 0);  // is in its owner's `next`
  for (const Vertex v : begin) changed[static_cast<std::size_t>(mail.owner(v))].now.push_back(v);
  do {
    mail.step(
        [&](int rank, auto&& send) {
          for (const Vertex v : changed[static_cast<std::size_t>(rank)].now) expand(v, send);
        },
        [&](int rank, Vertex v, Value value) {
          if (!combine(v, value) || waits[v] != 0) return;
          waits[v] = 1;
          changed[static_cast<std::size_t>(rank)].next.push_back(v);
        });
    for (Changed& each : changed) {
      each.now.swap(each.next);
      each.next.clear();
      for (const Vertex v : each.now) waits[v] = 0;
    }
  } while (std::any_of(changed.begin(), changed.end(),
                       [](const Changed& each) { return !each.now.empty(); }));
}

}  // namespace atl::kernels
