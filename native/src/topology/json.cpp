#include "json.hpp"

#include <nlohmann/json.hpp>

namespace atl::topology {
namespace {

using Json = nlohmann::ordered_json;

Json maybe(MaybeIndex index) { return index ? Json(*index) : Json(nullptr); }

const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::live: return "live";
    case Kind::xml: return "xml";
    case Kind::synthetic: return "synthetic";
    case Kind::sysfs: break;
  }
  return "sysfs";
}

// One JSON object per item, `index` first. hwloc's order gives the logical index.
template <typename Items, typename Describe>
Json list(const Items& items, Describe describe) {
  Json all = Json::array();
  for (std::size_t index = 0; index < items.size(); ++index) {
    Json one = describe(items[index]);
    Json numbered{{"index", index}};
    numbered.update(one);
    all.push_back(std::move(numbered));
  }
  return all;
}

template <typename Items, typename Describe>
Json plain_list(const Items& items, Describe describe) {
  Json all = Json::array();
  for (const auto& item : items) all.push_back(describe(item));
  return all;
}

bool has_smt(const Machine& machine) {
  for (const Core& core : machine.cores) {
    if (core.pus.size() > 1) return true;
  }
  return false;
}

}  // namespace

std::string to_json(const Machine& machine) {
  Json json;
  const Summary& summary = machine.summary;
  json["summary"] = {{"packages", summary.packages}, {"numa_nodes", summary.numa_nodes},
                     {"chiplets", summary.chiplets}, {"l3", summary.l3},
                     {"cores", summary.cores},       {"pus", summary.pus}};
  json["chiplets"] = list(machine.chiplets, [](const Chiplet& chiplet) {
    return Json{{"pus", chiplet.pus},          {"cores", chiplet.cores},
                {"node", maybe(chiplet.node)}, {"package", maybe(chiplet.package)},
                {"source", chiplet.source},    {"l3_bytes", chiplet.l3_bytes}};
  });
  json["format"] = "atoll/machine";
  json["version"] = 1;
  json["origin"] = {
      {"kind", name_of(machine.kind)}, {"where", machine.where}, {"hwloc", machine.hwloc_version}};
  json["architecture"] = machine.architecture;
  json["cpu_model"] = machine.cpu_model;
  json["memory_bytes"] = machine.memory_bytes;
  json["smt"] = has_smt(machine);
  json["packages"] = list(machine.packages, [](const Package& package) {
    return Json{
        {"os_index", package.os_index}, {"pus", package.pus}, {"cpu_model", package.cpu_model}};
  });
  json["dies"] = list(machine.dies, [](const Die& die) {
    return Json{{"os_index", die.os_index}, {"package", maybe(die.package)}, {"pus", die.pus}};
  });
  json["nodes"] = list(machine.nodes, [](const NumaNode& node) {
    return Json{{"os_index", node.os_index},
                {"package", maybe(node.package)},
                {"pus", node.pus},
                {"memory_bytes", node.memory_bytes},
                {"subtype", node.subtype}};
  });
  json["l3"] = list(machine.l3, [](const L3Domain& l3) {
    return Json{{"size_bytes", l3.size_bytes}, {"pus", l3.pus}};
  });
  json["cores"] = list(machine.cores, [](const Core& core) {
    return Json{{"os_index", core.os_index},      {"pus", core.pus},
                {"package", maybe(core.package)}, {"die", maybe(core.die)},
                {"l3", maybe(core.l3)},           {"node", maybe(core.node)}};
  });
  json["caches"] = plain_list(machine.caches, [](const Cache& cache) {
    return Json{
        {"level", cache.level},           {"kind", cache.kind}, {"size_bytes", cache.size_bytes},
        {"line_bytes", cache.line_bytes}, {"ways", cache.ways}, {"pus", cache.pus}};
  });
  json["distances"] = nullptr;
  if (machine.distances) {
    json["distances"] = {{"nodes", machine.distances->nodes},
                         {"values", machine.distances->values}};
  }
  json["nics"] = plain_list(machine.nics, [](const Nic& nic) {
    return Json{{"name", nic.name},
                {"node", maybe(nic.node)},
                {"pci", nic.pci},
                {"rate_mbit_s", maybe(nic.rate_mbit_s)}};
  });
  json["offline_cpus"] = machine.offline_cpus;
  const Allowed& allowed = machine.allowed;
  json["allowed"] = {{"pus", allowed.pus}, {"nodes", allowed.nodes}};
  json["allowed"]["memory_max_bytes"] =
      allowed.memory_max_bytes ? Json(*allowed.memory_max_bytes) : Json(nullptr);
  json["warnings"] = plain_list(machine.warnings, [](const Notice& notice) {
    return Json{{"code", notice.code}, {"message", notice.message}};
  });
  // Names in foreign files may be in any encoding.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace atl::topology
