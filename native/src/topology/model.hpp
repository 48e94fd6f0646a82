// The machine as plain values, between hwloc (read.cpp) and JSON (json.cpp). Has the same fields as
// src/atoll/schema/machine.py, which explains them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace atl::topology {

using Pus = std::vector<int>;  // OS indices, sorted
using MaybeIndex = std::optional<int>;

struct Chiplet {
  Pus pus;
  std::vector<int> cores;
  MaybeIndex node;
  MaybeIndex package;
  std::string source;
  std::uint64_t l3_bytes = 0;
};

struct Package {
  int os_index = 0;
  Pus pus;
  std::string cpu_model;
};

struct Die {
  int os_index = 0;
  MaybeIndex package;
  Pus pus;
};

struct NumaNode {
  int os_index = 0;
  MaybeIndex package;
  Pus pus;
  std::uint64_t memory_bytes = 0;
  std::string subtype;
};

struct Cache {
  int level = 0;
  std::string kind;
  std::uint64_t size_bytes = 0;
  unsigned line_bytes = 0;
  int ways = 0;
  Pus pus;
};

struct L3Domain {
  std::uint64_t size_bytes = 0;
  Pus pus;
};

struct Core {
  int os_index = 0;
  Pus pus;
  MaybeIndex package;
  MaybeIndex die;
  MaybeIndex l3;
  MaybeIndex node;
};

struct Distances {
  std::vector<int> nodes;
  std::vector<std::vector<std::uint64_t>> values;
};

struct Nic {
  std::string name;
  MaybeIndex node;
  std::string pci;
  std::optional<int> rate_mbit_s;  // as negotiated; unknown for most virtual cards
};

struct Allowed {
  Pus pus;
  std::vector<int> nodes;
  std::optional<std::uint64_t> memory_max_bytes;
};

struct Summary {
  int packages = 0;
  int numa_nodes = 0;
  int chiplets = 0;
  int l3 = 0;
  int cores = 0;
  int pus = 0;
};

struct Notice {
  std::string code;
  std::string message;
};

// Where a machine comes from: the `kind` passed to `discover`.
enum class Kind { live, xml, synthetic, sysfs };

struct Machine {
  Summary summary;
  std::vector<Chiplet> chiplets;
  Kind kind = Kind::live;
  std::string where;
  std::string hwloc_version;
  std::string architecture;
  std::string cpu_vendor;  // not in the JSON: separates AMD's L3-as-NUMA from Intel's SNC
  std::string cpu_model;
  std::uint64_t memory_bytes = 0;
  std::optional<std::uint64_t> mem_total_bytes;  // not in the JSON: from /proc/meminfo
  bool has_core_objects = true;                  // not in the JSON
  // Not in the JSON: kinds of objects whose CPUs were all taken away, with their number.
  std::vector<std::pair<std::string, int>> without_cpus;
  std::vector<Package> packages;
  std::vector<Die> dies;
  std::vector<NumaNode> nodes;
  std::vector<L3Domain> l3;
  std::vector<Core> cores;
  std::vector<Cache> caches;
  std::optional<Distances> distances;
  std::vector<Nic> nics;
  Pus offline_cpus;
  Allowed allowed;
  std::vector<Notice> warnings;
};

}  // namespace atl::topology
