#include "read.hpp"

#include <hwloc/distances.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "atoll/topology.hpp"
#include "pus.hpp"

namespace atl::topology {
namespace {

int count(hwloc_topology_t topology, hwloc_obj_type_t type) {
  // Negative if a type has several depths, which no type used here has.
  return std::max(0, hwloc_get_nbobjs_by_type(topology, type));
}

std::vector<hwloc_obj_t> objects(hwloc_topology_t topology, hwloc_obj_type_t type) {
  std::vector<hwloc_obj_t> all;
  for (int i = 0; i < count(topology, type); ++i) {
    all.push_back(hwloc_get_obj_by_type(topology, type, static_cast<unsigned>(i)));
  }
  return all;
}

std::vector<int> members(hwloc_const_bitmap_t bitmap) {
  std::vector<int> all;
  // hwloc uses an infinite bitmap for 'unknown'; a loop over it would never end.
  if (bitmap == nullptr || hwloc_bitmap_weight(bitmap) < 0) return all;
  for (int i = hwloc_bitmap_first(bitmap); i >= 0; i = hwloc_bitmap_next(bitmap, i)) {
    all.push_back(i);
  }
  return all;
}

std::string info(hwloc_obj_t object, const char* name) {
  const char* value = hwloc_obj_get_info_by_name(object, name);
  return value == nullptr ? "" : value;
}

// -1 if the system gave no number.
int os_index(hwloc_obj_t object) { return static_cast<int>(object->os_index); }

hwloc_obj_t ancestor(hwloc_topology_t topology, hwloc_obj_t object, hwloc_obj_type_t type) {
  return hwloc_get_ancestor_obj_by_type(topology, type, object);
}

MaybeIndex ancestor_index(hwloc_topology_t topology, hwloc_obj_t object, hwloc_obj_type_t type) {
  const hwloc_obj_t above = ancestor(topology, object, type);
  if (above == nullptr) return std::nullopt;
  return static_cast<int>(above->logical_index);
}

const char* cache_kind(hwloc_obj_cache_type_t type) {
  switch (type) {
    case HWLOC_OBJ_CACHE_DATA: return "data";
    case HWLOC_OBJ_CACHE_INSTRUCTION: return "instruction";
    case HWLOC_OBJ_CACHE_UNIFIED: break;
  }
  return "unified";
}

void read_caches(hwloc_topology_t topology, Machine& machine) {
  for (const hwloc_obj_type_t type :
       {HWLOC_OBJ_L1CACHE, HWLOC_OBJ_L1ICACHE, HWLOC_OBJ_L2CACHE, HWLOC_OBJ_L2ICACHE,
        HWLOC_OBJ_L3CACHE, HWLOC_OBJ_L3ICACHE, HWLOC_OBJ_L4CACHE, HWLOC_OBJ_L5CACHE}) {
    for (const hwloc_obj_t object : objects(topology, type)) {
      const auto& cache = object->attr->cache;
      machine.caches.push_back({.level = static_cast<int>(cache.depth),
                                .kind = cache_kind(cache.type),
                                .size_bytes = cache.size,
                                .line_bytes = cache.linesize,
                                .ways = cache.associativity,
                                .pus = members(object->cpuset)});
      if (type == HWLOC_OBJ_L3CACHE) {
        machine.l3.push_back({.size_bytes = cache.size, .pus = members(object->cpuset)});
      }
    }
  }
}

void read_nodes(hwloc_topology_t topology, Machine& machine) {
  for (const hwloc_obj_t object : objects(topology, HWLOC_OBJ_NUMANODE)) {
    machine.nodes.push_back({.os_index = os_index(object),
                             .package = ancestor_index(topology, object, HWLOC_OBJ_PACKAGE),
                             .pus = members(object->cpuset),
                             .memory_bytes = object->attr->numanode.local_memory,
                             .subtype = object->subtype == nullptr ? "" : object->subtype});
  }
}

void read_cores(hwloc_topology_t topology, Machine& machine) {
  machine.has_core_objects = count(topology, HWLOC_OBJ_CORE) > 0;
  const auto type = machine.has_core_objects ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
  for (const hwloc_obj_t object : objects(topology, type)) {
    Pus pus = members(object->cpuset);
    if (pus.empty()) continue;  // nothing can run there; the summary counts it as hwloc does
    Core core{.os_index = os_index(object),
              .pus = std::move(pus),
              .package = ancestor_index(topology, object, HWLOC_OBJ_PACKAGE),
              .die = ancestor_index(topology, object, HWLOC_OBJ_DIE),
              .l3 = ancestor_index(topology, object, HWLOC_OBJ_L3CACHE),
              .node = std::nullopt};
    core.node = local_node(machine.nodes, core.pus);
    machine.cores.push_back(std::move(core));
  }
}

// The kernel's matrix has 10 on its diagonal; files can also contain measured matrices.
bool is_slit(const hwloc_distances_s& matrix) {
  for (std::size_t i = 0; i < matrix.nbobjs; ++i) {
    if (matrix.values[i * matrix.nbobjs + i] != 10) return false;
  }
  return true;
}

void read_distances(hwloc_topology_t topology, Machine& machine) {
  std::array<hwloc_distances_s*, 16> found{};
  auto number = static_cast<unsigned>(found.size());
  if (hwloc_distances_get_by_type(topology, HWLOC_OBJ_NUMANODE, &number, found.data(),
                                  HWLOC_DISTANCES_KIND_MEANS_LATENCY, 0) != 0) {
    return;
  }
  for (std::size_t k = 0; k < std::min<std::size_t>(number, found.size()); ++k) {
    const hwloc_distances_s& matrix = *found[k];
    if (!machine.distances && is_slit(matrix)) {
      Distances distances;
      const std::size_t size = matrix.nbobjs;
      for (std::size_t i = 0; i < size; ++i) {
        distances.nodes.push_back(os_index(matrix.objs[i]));
        distances.values.emplace_back(matrix.values + i * size, matrix.values + (i + 1) * size);
      }
      machine.distances = std::move(distances);
    }
    hwloc_distances_release(topology, found[k]);
  }
}

// hwloc keeps objects whose CPUs a cgroup, a mask or `lstopo --restrict` took away if memory is
// attached below them. Memory that never had CPUs looks the same, if hwloc gave it no name (CXL).
bool lost_its_cpus(hwloc_obj_t object) {
  return hwloc_bitmap_iszero(object->cpuset) != 0 &&
         (object->type != HWLOC_OBJ_NUMANODE || object->subtype == nullptr);
}

void count_without_cpus(hwloc_topology_t topology, Machine& machine) {
  for (const auto& [type, name] :
       {std::pair{HWLOC_OBJ_PACKAGE, "package"}, std::pair{HWLOC_OBJ_DIE, "die"},
        std::pair{HWLOC_OBJ_NUMANODE, "NUMA node"}, std::pair{HWLOC_OBJ_L3CACHE, "L3 cache"},
        std::pair{HWLOC_OBJ_CORE, "core"}}) {
    const auto all = objects(topology, type);
    const auto lost = std::count_if(all.begin(), all.end(), lost_its_cpus);
    if (lost > 0) machine.without_cpus.emplace_back(name, static_cast<int>(lost));
  }
}

std::string pci_address(hwloc_obj_t device) {
  while (device != nullptr && device->type != HWLOC_OBJ_PCI_DEVICE) device = device->parent;
  if (device == nullptr) return "";
  const auto& pci = device->attr->pcidev;
  std::string text(32, '\0');
  const int length =
      std::snprintf(text.data(), text.size(), "%04x:%02x:%02x.%01x",
                    static_cast<unsigned>(pci.domain), static_cast<unsigned>(pci.bus),
                    static_cast<unsigned>(pci.dev), static_cast<unsigned>(pci.func));
  text.resize(static_cast<std::size_t>(length));
  return text;
}

void read_nics(hwloc_topology_t topology, Machine& machine) {
  for (const hwloc_obj_t object : objects(topology, HWLOC_OBJ_OS_DEVICE)) {
    if (object->attr->osdev.type != HWLOC_OBJ_OSDEV_NETWORK || object->name == nullptr) continue;
    const hwloc_obj_t near = hwloc_get_non_io_ancestor_obj(topology, object);
    Nic nic{.name = object->name,
            .node = std::nullopt,
            .pci = pci_address(object),
            .rate_mbit_s = std::nullopt};
    if (near != nullptr) nic.node = local_node(machine.nodes, members(near->cpuset));
    machine.nics.push_back(std::move(nic));
  }
}

// Rejects a PU in two of these objects, which is impossible in hardware.
template <typename Objects>
void refuse_overlap(const Objects& objects, const char* what, const std::string& subject) {
  Pus seen;
  for (const auto& object : objects) {
    seen.insert(seen.end(), object.pus.begin(), object.pus.end());
  }
  std::sort(seen.begin(), seen.end());
  const auto twice = std::adjacent_find(seen.begin(), seen.end());
  if (twice != seen.end()) {
    throw Fault(subject + ": contradicts itself: PU " + std::to_string(*twice) + " is in two " +
                what + "s");
  }
}

// Objects form a tree: each core lies inside one package, each package inside or around a node.
template <typename Objects>
void refuse_partial(const Pus& pus, const Objects& objects, const char* what, const char* other,
                    const std::string& subject) {
  for (const auto& object : objects) {
    if (intersects(pus, object.pus) && !contains(pus, object.pus) && !contains(object.pus, pus)) {
      throw Fault(subject + ": contradicts itself: a " + what + " (PUs " + to_list(pus) +
                  ") and a " + other + " (PUs " + to_list(object.pus) + ") overlap in part");
    }
  }
}

void refuse_contradictions(hwloc_topology_t topology, const Machine& machine,
                           const std::string& subject) {
  Pus all;
  for (const hwloc_obj_t pu : objects(topology, HWLOC_OBJ_PU)) {
    if (members(pu->cpuset) != Pus{os_index(pu)}) {
      throw Fault(subject + ": contradicts itself: PU " + std::to_string(os_index(pu)) +
                  " has another number in its cpuset");
    }
    all.push_back(os_index(pu));
  }
  if (all.empty()) throw Fault(subject + ": has no PU");
  std::sort(all.begin(), all.end());
  const auto twice = std::adjacent_find(all.begin(), all.end());
  if (twice != all.end()) {
    throw Fault(subject + ": contradicts itself: PU " + std::to_string(*twice) + " appears twice");
  }
  refuse_overlap(machine.cores, "core", subject);
  refuse_overlap(machine.packages, "package", subject);
  refuse_overlap(machine.dies, "die", subject);
  refuse_overlap(machine.l3, "L3 cache", subject);
  Pus in_cores;
  for (const Core& core : machine.cores) {
    in_cores.insert(in_cores.end(), core.pus.begin(), core.pus.end());
    refuse_partial(core.pus, machine.packages, "core", "package", subject);
    refuse_partial(core.pus, machine.l3, "core", "L3 cache", subject);
    refuse_partial(core.pus, machine.nodes, "core", "NUMA node", subject);
  }
  std::sort(in_cores.begin(), in_cores.end());
  if (in_cores != all) {
    throw Fault(subject + ": contradicts itself: the cores' PUs (" + to_list(in_cores) +
                ") are not the machine's (" + to_list(all) + ")");
  }
  std::vector<int> numbers;
  for (const NumaNode& node : machine.nodes) {
    numbers.push_back(node.os_index);
    refuse_partial(node.pus, machine.nodes, "NUMA node", "NUMA node", subject);
    if (!contains(all, node.pus)) {
      throw Fault(subject + ": contradicts itself: NUMA node " + std::to_string(node.os_index) +
                  " has PUs that the machine does not have");
    }
    constexpr std::uint64_t exbibyte = std::uint64_t{1} << 60;
    if (node.memory_bytes > exbibyte) {
      throw Fault(subject + ": contradicts itself: NUMA node " + std::to_string(node.os_index) +
                  " has over an exbibyte of memory");
    }
  }
  std::sort(numbers.begin(), numbers.end());
  const auto same = std::adjacent_find(numbers.begin(), numbers.end());
  if (same != numbers.end()) {
    throw Fault(subject + ": contradicts itself: NUMA node " + std::to_string(*same) +
                " appears twice");
  }
}

}  // namespace

Machine read_machine(hwloc_topology_t topology, const std::string& subject) {
  Machine machine;
  const hwloc_obj_t root = hwloc_get_root_obj(topology);
  const unsigned version = hwloc_get_api_version();
  machine.hwloc_version = std::to_string(version >> 16) + '.' +
                          std::to_string((version >> 8) & 255) + '.' +
                          std::to_string(version & 255);
  machine.architecture = info(root, "Architecture");
  for (const hwloc_obj_t object : objects(topology, HWLOC_OBJ_PACKAGE)) {
    machine.packages.push_back({.os_index = os_index(object),
                                .pus = members(object->cpuset),
                                .cpu_model = info(object, "CPUModel")});
    if (machine.cpu_vendor.empty()) machine.cpu_vendor = info(object, "CPUVendor");
    if (machine.cpu_model.empty()) machine.cpu_model = machine.packages.back().cpu_model;
  }
  if (machine.cpu_model.empty()) machine.cpu_model = info(root, "CPUModel");
  if (machine.cpu_vendor.empty()) machine.cpu_vendor = info(root, "CPUVendor");
  for (const hwloc_obj_t object : objects(topology, HWLOC_OBJ_DIE)) {
    machine.dies.push_back({.os_index = os_index(object),
                            .package = ancestor_index(topology, object, HWLOC_OBJ_PACKAGE),
                            .pus = members(object->cpuset)});
  }
  read_nodes(topology, machine);
  read_caches(topology, machine);
  read_cores(topology, machine);
  count_without_cpus(topology, machine);
  refuse_contradictions(topology, machine, subject);
  for (const NumaNode& node : machine.nodes) machine.memory_bytes += node.memory_bytes;
  read_distances(topology, machine);
  read_nics(topology, machine);
  part_cpus(machine.nodes);
  hwloc_bitmap_t offline = hwloc_bitmap_alloc();
  hwloc_bitmap_andnot(offline, hwloc_topology_get_complete_cpuset(topology),
                      hwloc_topology_get_topology_cpuset(topology));
  machine.offline_cpus = members(offline);
  hwloc_bitmap_free(offline);
  machine.allowed.pus = members(hwloc_topology_get_allowed_cpuset(topology));
  machine.allowed.nodes = members(hwloc_topology_get_allowed_nodeset(topology));
  return machine;
}

Summary count_objects(hwloc_topology_t topology) {
  return {.packages = count(topology, HWLOC_OBJ_PACKAGE),
          .numa_nodes = count(topology, HWLOC_OBJ_NUMANODE),
          .chiplets = 0,
          .l3 = count(topology, HWLOC_OBJ_L3CACHE),
          .cores = count(topology, HWLOC_OBJ_CORE),
          .pus = count(topology, HWLOC_OBJ_PU)};
}

}  // namespace atl::topology
