// The topology step: source -> hwloc (in a child) -> Machine -> chiplets, warnings -> JSON.
#include "atoll/topology.hpp"

#include <cstring>
#include <optional>

#include "child.hpp"
#include "chiplets.hpp"
#include "json.hpp"
#include "pus.hpp"
#include "read.hpp"
#include "source.hpp"
#include "system.hpp"
#include "warnings.hpp"

namespace atl::topology {
namespace {

Kind kind_of(std::string_view kind) {
  if (kind == "live") return Kind::live;
  if (kind == "xml") return Kind::xml;
  if (kind == "synthetic") return Kind::synthetic;
  if (kind == "sysfs") return Kind::sysfs;
  throw Fault("unknown kind of topology '" + std::string(kind) +
              "'; use live, xml, synthetic or sysfs");
}

bool all_allowed(hwloc_topology_t topology) {
  return hwloc_bitmap_isequal(hwloc_topology_get_allowed_cpuset(topology),
                              hwloc_topology_get_topology_cpuset(topology)) != 0 &&
         hwloc_bitmap_isequal(hwloc_topology_get_allowed_nodeset(topology),
                              hwloc_topology_get_topology_nodeset(topology)) != 0;
}

void add_system_facts(Machine& machine, const Source& source) {
  if (source.kind != Kind::live && source.kind != Kind::sysfs) return;
  const std::filesystem::path root = source.kind == Kind::live ? "/" : source.filesystem;
  machine.mem_total_bytes = mem_total_bytes(root);
  machine.nics = network_interfaces(root);
  // A virtual machine with one node reports -1 for its devices, which can only mean that node.
  if (machine.nodes.size() == 1) {
    for (Nic& nic : machine.nics) nic.node = machine.nodes.front().os_index;
  }
  Pus offline = offline_cpus(root);
  offline.insert(offline.end(), machine.offline_cpus.begin(), machine.offline_cpus.end());
  std::sort(offline.begin(), offline.end());
  offline.erase(std::unique(offline.begin(), offline.end()), offline.end());
  machine.offline_cpus = std::move(offline);
}

int usable_chiplets(const Machine& machine) {
  return static_cast<int>(std::count_if(
      machine.chiplets.begin(), machine.chiplets.end(),
      [&](const Chiplet& chiplet) { return intersects(chiplet.pus, machine.allowed.pus); }));
}

// Runs in the child.
std::string machine_json(const Source& source, const Progress& progress) {
  prepare_environment(source);
  const Topology whole = load(source, true);
  // hwloc's tools drop disallowed objects and those that become empty. Let hwloc apply its rules.
  const Topology shown = all_allowed(whole.get()) ? nullptr : load(source, false);
  progress.input_accepted();

  Machine machine = read_machine(whole.get(), subject_of(source));
  machine.kind = source.kind;
  machine.where = source.where;
  add_system_facts(machine, source);
  machine.chiplets = find_chiplets(machine);
  machine.summary = count_objects(shown ? shown.get() : whole.get());
  machine.summary.chiplets = usable_chiplets(machine);
  machine.warnings = find_implausible(machine);
  const std::string complaint = first_line(Progress::printed());
  if (complaint.find("has encountered") != std::string::npos) {
    machine.warnings.push_back({"hwloc-complaint", "hwloc reports: " + complaint});
  }
  // After the summary, because hwloc's tools apply the cgroup but not the mask.
  if (source.kind == Kind::live) {
    machine.allowed.pus = intersection(machine.allowed.pus, affinity());
    machine.allowed.memory_max_bytes = memory_max_bytes("/");
  }
  return to_json(machine);
}

std::string discover(const Source& source) {
  return in_child(subject_of(source), source.kind != Kind::live,
                  [&](const Progress& progress) { return machine_json(source, progress); });
}

}  // namespace

std::string discover(std::string_view kind, const std::string& where) {
  Source source{.kind = kind_of(kind), .where = where, .xml = "", .filesystem = ""};
  if (source.kind == Kind::xml) return discover_xml(read_xml_file(where), where);
  if (source.kind == Kind::synthetic) check_synthetic(source);
  std::optional<CapturedFolder> captured;
  if (source.kind == Kind::sysfs) {
    captured.emplace(where);
    source.filesystem = captured->root();
  }
  return discover(source);
}

std::string discover_xml(const std::string& content, const std::string& where) {
  Source source{.kind = Kind::xml, .where = where, .xml = content, .filesystem = ""};
  accept_xml(source);
  return discover(source);
}

}  // namespace atl::topology

int atoll_topology_discover(const char* kind, const char* where, char** text) {
  try {
    *text = strdup(atl::topology::discover(kind, where).c_str());
    return *text == nullptr ? 1 : 0;
  } catch (const std::exception& fault) {
    *text = strdup(fault.what());
    return 1;
  }
}
