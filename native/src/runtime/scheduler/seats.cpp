#include "seats.hpp"

#include <algorithm>
#include <utility>

#include "affinity.hpp"
#include "memory/page_policy.hpp"

namespace atl::runtime {

namespace {

std::size_t cpus_up_to_last(const Places& places) {
  int last = -1;
  for (const Core& core : places.cores) {
    for (const int cpu : core.cpus) last = std::max(last, cpu);
  }
  return static_cast<std::size_t>(last + 1);
}

}  // namespace

Seats::Seats(Places all, int workers, bool pin, bool share)
    : places(std::move(all)),
      nodes(places.nodes()),
      memory_nodes_(nodes),
      cpus_of_nodes_(nodes.size()),
      pins_(pin),
      usable_(usable_cores(places, cpus_of_this_thread())),
      bounds_(worker_bounds(places, usable_, workers)),
      core_of_worker_(seat_workers(places, usable_, workers, 1)),
      thread_of_worker_(core_of_worker_.size()),
      bound_(core_of_worker_.size()),
      bound_to_cpu_(cpus_up_to_last(places)),
      on_core_(places.cores.size()) {
  for (std::size_t at = 0; at < nodes.size(); ++at) {
    for (const int core : places.cores_of_node(nodes[at])) {
      const std::vector<int>& cpus = places.cores[static_cast<std::size_t>(core)].cpus;
      cpus_of_nodes_[at].insert(cpus_of_nodes_[at].end(), cpus.begin(), cpus.end());
    }
  }
  if (places.made_up) {
    const std::vector<int> real = nodes_with_memory();
    for (std::size_t at = 0; at < nodes.size(); ++at) memory_nodes_[at] = real[at % real.size()];
  }
  if (share) shared_ = by_chiplet(usable_);
  note_seats();
}

void Seats::sit(int rank, int thread) {
  const std::lock_guard lock(mutex_);
  thread_of_worker_[static_cast<std::size_t>(rank)] = thread;
  if (pins()) bind(static_cast<std::size_t>(rank));
}

void Seats::place(int spread, const Approach& approach) {
  const std::lock_guard lock(mutex_);
  std::vector<int> cores = mapped(places, usable_, core_of_worker_, spread, approach);
  if (cores.empty()) cores = seat_workers(places, usable_, size(), spread);
  core_of_worker_ = std::move(cores);
  note_seats();
  if (!pins()) return;
  for (std::size_t rank = 0; rank < core_of_worker_.size(); ++rank) bind(rank);
}

SpreadBounds Seats::bounds() const {
  const std::lock_guard lock(mutex_);
  return bounds_;
}

bool Seats::restrict_to(std::span<const int> cpus) {
  const std::lock_guard lock(mutex_);
  std::vector<int> cores = usable_cores(places, cpus);
  if (cores == usable_) return false;
  const SpreadBounds bounds = worker_bounds(places, cores, size());
  std::vector<std::vector<int>> shared;
  if (!shared_.empty()) shared = by_chiplet(cores);
  usable_ = std::move(cores);
  bounds_ = bounds;
  shared_ = std::move(shared);
  // The change of the mask has changed the workers' masks, too.
  for (std::vector<int>& cpus : bound_) cpus.clear();
  return true;
}

void Seats::set_pin(bool pin) {
  const std::lock_guard lock(mutex_);
  pins_.store(pin, std::memory_order_relaxed);
  for (std::size_t rank = 0; rank < core_of_worker_.size(); ++rank) bind(rank);
}

int Seats::bound_to(int cpu) const {
  const auto at = static_cast<std::size_t>(cpu);
  if (!pins() || at >= bound_to_cpu_.size()) return -1;
  return bound_to_cpu_[at].load(std::memory_order_relaxed);
}

int Seats::worker_on(int core) const {
  const auto at = static_cast<std::size_t>(core);
  return at < on_core_.size() ? on_core_[at].load(std::memory_order_relaxed) : -1;
}

std::vector<int> Seats::cores() const {
  const std::lock_guard lock(mutex_);
  return core_of_worker_;
}

std::vector<int> Seats::cpus_of_chiplets() const {
  std::vector<int> cpus(static_cast<std::size_t>(places.chiplets()), -1);
  for (const int core : cores()) {
    const Core& one = places.cores[static_cast<std::size_t>(core)];
    cpus[static_cast<std::size_t>(one.chiplet)] = one.cpus.front();
  }
  std::erase(cpus, -1);
  return cpus;
}

std::vector<Seat> Seats::seats() const {
  const std::lock_guard lock(mutex_);
  std::vector<Seat> seats;
  for (std::size_t rank = 0; rank < core_of_worker_.size(); ++rank) {
    seats.push_back({core_of_worker_[rank], cpus_of(rank)});
  }
  return seats;
}

std::span<const int> Seats::cpus_near(int core) const {
  if (!pins() || nodes.size() == 1) return {};
  const int node = places.cores[static_cast<std::size_t>(core)].node;
  const auto at = std::ranges::lower_bound(nodes, node) - nodes.begin();
  return cpus_of_nodes_[static_cast<std::size_t>(at)];
}

NodeMap Seats::node_map(int runtime) const {
  NodeMap map{memory_nodes_, {}, runtime};
  for (const int core : cores()) {
    const int node = places.cores[static_cast<std::size_t>(core)].node;
    const auto at = std::ranges::lower_bound(nodes, node) - nodes.begin();
    map.node_of_rank.push_back(memory_nodes_[static_cast<std::size_t>(at)]);
  }
  std::ranges::sort(map.nodes);  // made-up nodes share the machine's
  map.nodes.erase(std::unique(map.nodes.begin(), map.nodes.end()), map.nodes.end());
  return map;
}

const std::vector<int>& Seats::cpus_of(std::size_t rank) const {
  const Core& core = places.cores[static_cast<std::size_t>(core_of_worker_[rank])];
  return shared_.empty() ? core.cpus : shared_[static_cast<std::size_t>(core.chiplet)];
}

// Relaxed: who reads a seat that changes meanwhile has read it a moment earlier.
void Seats::note_seats() {
  for (std::atomic<int>& bound : bound_to_cpu_) bound.store(-1, std::memory_order_relaxed);
  for (std::size_t rank = 0; rank < core_of_worker_.size(); ++rank) {
    for (const int cpu : cpus_of(rank)) {
      bound_to_cpu_[static_cast<std::size_t>(cpu)].store(static_cast<int>(rank),
                                                         std::memory_order_relaxed);
    }
  }
  // A core that keeps a worker has one at every moment.
  for (std::size_t rank = core_of_worker_.size(); rank-- > 0;) {
    on_core_[static_cast<std::size_t>(core_of_worker_[rank])].store(static_cast<int>(rank),
                                                                    std::memory_order_relaxed);
  }
  for (std::size_t core = 0; core < on_core_.size(); ++core) {
    const int rank = on_core_[core].load(std::memory_order_relaxed);
    if (rank >= 0 && core_of_worker_[static_cast<std::size_t>(rank)] != static_cast<int>(core)) {
      on_core_[core].store(-1, std::memory_order_relaxed);
    }
  }
}

// The CPUs of these cores.
std::vector<std::vector<int>> Seats::by_chiplet(std::span<const int> cores) const {
  std::vector<std::vector<int>> shared(static_cast<std::size_t>(places.chiplets()));
  for (const int core : cores) {
    const Core& one = places.cores[static_cast<std::size_t>(core)];
    std::vector<int>& cpus = shared[static_cast<std::size_t>(one.chiplet)];
    cpus.insert(cpus.end(), one.cpus.begin(), one.cpus.end());
  }
  for (std::vector<int>& cpus : shared) {
    std::ranges::sort(cpus);  // made-up cores share CPUs
    cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
  }
  return shared;
}

// Binds the worker's thread to its seat, unless it is; if workers are not bound, to all CPUs that
// the process may use.
void Seats::bind(std::size_t rank) {
  std::vector<int> cpus;
  if (pins()) {
    cpus = cpus_of(rank);
  } else {
    for (const int core : usable_) {
      const std::vector<int>& of_core = places.cores[static_cast<std::size_t>(core)].cpus;
      cpus.insert(cpus.end(), of_core.begin(), of_core.end());
    }
  }
  if (cpus == bound_[rank]) return;
  bind_thread(thread_of_worker_[rank], cpus);
  bound_[rank] = std::move(cpus);
}

}  // namespace atl::runtime
