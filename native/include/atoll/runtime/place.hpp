// Where a task may run. By default: anywhere.
#pragma once

namespace atl {

// Workers by rank. The other indices are those of the runtime's Places: cores and chiplets dense
// from 0, nodes by OS index.
struct Place {
  enum class Kind { anywhere, worker, core, chiplet, node, group };
  Kind kind = Kind::anywhere;
  int index = 0;
  bool urgent = false;  // see urgently
  bool operator==(const Place&) const = default;
};

// The worker of this rank, wherever it sits.
inline Place on_worker(int rank) { return {Place::Kind::worker, rank}; }
// The worker that sits on this core when the task is spawned; if it moves, the task moves with it.
inline Place on_core(int index) { return {Place::Kind::core, index}; }
// Any worker that sits on this chiplet; if the controller leaves it without one, any worker.
inline Place on_chiplet(int index) { return {Place::Kind::chiplet, index}; }
// Likewise for a NUMA node.
inline Place on_node(int os_index) { return {Place::Kind::node, os_index}; }

// There, and before all that waits to begin: a worker takes it when it next looks for work, which
// it also does between the pieces of a loop and in every eighth yield. What an urgent task forks or
// spawns is not urgent, and once it has waited it queues as others do. However many urgent tasks
// come, one turn in 64 of each worker is for the others.
inline Place urgently(Place place = {}) {
  place.urgent = true;
  return place;
}

}  // namespace atl
