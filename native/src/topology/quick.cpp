#include "quick.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

#include "chiplets.hpp"
#include "pus.hpp"

namespace atl::topology {
namespace {

// The machine is not regular: hwloc must read it.
struct Irregular {};

void require(bool condition) {
  if (!condition) throw Irregular();
}

// Files of sysfs by their path below a folder. The first 4096 bytes hold any list of a regular
// machine, as the kernel has one page for them.
class Folder {
 public:
  explicit Folder(std::string path) : path_(std::move(path)) {}

  [[nodiscard]] Folder operator/(const std::string& name) const {
    return Folder(path_ + '/' + name);
  }

  // Without the end of the line; nullopt if there is no such file.
  [[nodiscard]] std::optional<std::string> text(const char* name) const {
    const int file = open((path_ + '/' + name).c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return std::nullopt;
    std::array<char, 4096> buffer;
    const ssize_t count = read(file, buffer.data(), buffer.size());
    close(file);
    if (count < 0 || count == static_cast<ssize_t>(buffer.size())) return std::nullopt;
    std::string text(buffer.data(), static_cast<std::size_t>(count));
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text;
  }

  // A list of CPUs or nodes, "0-3,8".
  [[nodiscard]] std::optional<Pus> list(const char* name) const {
    const auto line = text(name);
    Pus pus;
    if (!line || !from_list(*line, pus)) return std::nullopt;
    return pus;
  }

  // A mask of CPUs, "ff,00000000". Captures can lack the files with lists.
  [[nodiscard]] std::optional<Pus> mask(const char* name) const {
    const auto line = text(name);
    if (!line) return std::nullopt;
    Pus pus;
    int lowest = 0;  // of the digit
    for (auto digit = line->rbegin(); digit != line->rend(); ++digit) {
      if (*digit == ',') continue;
      const auto at = std::string_view("0123456789abcdef").find(*digit);
      if (at == std::string_view::npos) return std::nullopt;
      for (int bit = 0; bit < 4; ++bit) {
        if ((at >> bit & 1) != 0) pus.push_back(lowest + bit);
      }
      lowest += 4;
    }
    return pus;
  }

  [[nodiscard]] bool has(const char* name) const {
    return access((path_ + '/' + name).c_str(), F_OK) == 0;
  }

  // Names of entries that begin with `prefix`.
  [[nodiscard]] std::vector<std::string> entries(std::string_view prefix) const {
    std::vector<std::string> found;
    DIR* const folder = opendir(path_.c_str());
    if (folder == nullptr) return found;
    while (const dirent* entry = readdir(folder)) {
      if (std::string_view(entry->d_name).starts_with(prefix)) found.emplace_back(entry->d_name);
    }
    closedir(folder);
    return found;
  }

 private:
  std::string path_;
};

struct Cpus {
  Folder folder;  // devices/system/cpu
  Pus online;

  [[nodiscard]] Folder of(int cpu) const { return folder / ("cpu" + std::to_string(cpu)); }
};

// The sets that `set_of` gives for the lowest CPU of each. They must be disjoint and hold every
// CPU.
template <typename SetOf>
std::vector<Pus> partition(const Cpus& cpus, SetOf set_of) {
  std::vector<Pus> sets;
  std::vector<char> seen(static_cast<std::size_t>(cpus.online.back()) + 1, 0);
  for (const int cpu : cpus.online) {
    if (seen[static_cast<std::size_t>(cpu)] != 0) continue;
    const std::optional<Pus> listed = set_of(cpu);
    require(listed.has_value());
    Pus pus = intersection(*listed, cpus.online);
    require(!pus.empty() && pus.front() == cpu);
    for (const int member : pus) {
      require(seen[static_cast<std::size_t>(member)] == 0);
      seen[static_cast<std::size_t>(member)] = 1;
    }
    sets.push_back(std::move(pus));
  }
  return sets;
}

std::vector<Pus> partition_by(const Cpus& cpus, const char* file) {
  return partition(cpus, [&](int cpu) { return cpus.of(cpu).mask(file); });
}

template <typename Object>
std::vector<Object> objects_of(std::vector<Pus> sets) {
  std::vector<Object> objects;
  for (Pus& pus : sets) {
    Object object;
    object.pus = std::move(pus);
    objects.push_back(std::move(object));
  }
  return objects;
}

// The unified cache of level 3 among the caches of a CPU.
std::string l3_folder(const Folder& cpu) {
  for (int index = 3; index >= 0; --index) {
    const std::string name = "cache/index" + std::to_string(index);
    const Folder cache = cpu / name;
    if (cache.text("level") == "3" && cache.text("type") == "Unified") return name;
  }
  throw Irregular();
}

std::vector<Pus> read_l3(const Cpus& cpus) {
  const std::string name = l3_folder(cpus.of(cpus.online.front()));
  // Knights Landing shows memory as an L3 of size 0.
  require(cpus.of(cpus.online.front()).text((name + "/size").c_str()) != "0K");
  return partition(cpus, [&](int cpu) {
    const Folder cache = cpus.of(cpu) / name;
    require(cache.text("level") == "3");
    auto pus = cache.mask("shared_cpu_map");
    // A cluster around several L3s would be a group that may change their order.
    const auto cluster = cpus.of(cpu).mask("topology/cluster_cpus");
    require(pus && (!cluster || contains(*pus, intersection(*cluster, cpus.online))));
    return pus;
  });
}

// hwloc ignores dies that are packages, or single CPUs.
std::vector<Die> read_dies(const Cpus& cpus, const std::vector<Package>& packages) {
  if (!cpus.of(cpus.online.front()).has("topology/die_cpus")) return {};
  std::vector<Pus> sets = partition_by(cpus, "topology/die_cpus");
  std::erase_if(sets, [&](const Pus& pus) {
    return pus.size() == 1 ||
           std::any_of(packages.begin(), packages.end(),
                       [&](const Package& package) { return package.pus == pus; });
  });
  return objects_of<Die>(std::move(sets));
}

std::vector<NumaNode> read_nodes(const Folder& folder, const Pus& online) {
  const auto numbers = folder.list("online");
  require(numbers && !numbers->empty());
  std::vector<NumaNode> nodes;
  Pus all;
  for (const int number : *numbers) {
    const Folder node = folder / ("node" + std::to_string(number));
    const auto listed = node.mask("cpumap");
    require(listed.has_value());
    Pus pus = intersection(*listed, online);
    // hwloc finds the place of memory alone by tables and distances.
    require(!pus.empty());
    // The firmware's table may widen a node to those that it names next to the node itself.
    for (const std::string& name : (node / "access0/initiators").entries("node")) {
      require(name == "node" + std::to_string(number));
    }
    all.insert(all.end(), pus.begin(), pus.end());
    NumaNode& made = nodes.emplace_back();
    made.os_index = number;
    made.pus = std::move(pus);
  }
  std::sort(all.begin(), all.end());
  require(all == online);  // each CPU in one node
  return nodes;
}

// hwloc groups near nodes. If every distance between two nodes is the largest step between them in
// order, groups are runs of neighbours, which leave the order as it is.
void require_plain_distances(const Folder& folder, const std::vector<NumaNode>& nodes) {
  if (nodes.size() < 3) return;
  std::vector<std::vector<int>> rows;
  std::vector<int> numbers;
  for (const NumaNode& node : nodes) numbers.push_back(node.os_index);
  std::vector<int> in_file = numbers;
  std::sort(in_file.begin(), in_file.end());
  for (const int number : numbers) {
    const auto line = (folder / ("node" + std::to_string(number))).text("distance");
    require(line.has_value());
    std::vector<int> by_file;
    const char* at = line->c_str();
    for (char* end = nullptr; *at != '\0'; at = end) {
      by_file.push_back(static_cast<int>(std::strtol(at, &end, 10)));
      require(end != at);
    }
    require(by_file.size() == numbers.size());
    std::vector<int> row;
    for (const int other : numbers) {
      const auto column = std::lower_bound(in_file.begin(), in_file.end(), other) - in_file.begin();
      row.push_back(by_file[static_cast<std::size_t>(column)]);
    }
    rows.push_back(std::move(row));
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t k = i + 1; k < rows.size(); ++k) {
      require(rows[i][k] == rows[k][i]);
      if (k > i + 1) require(rows[i][k] == std::max(rows[i][k - 1], rows[k - 1][k]));
    }
  }
}

// The objects of a tree: any two are disjoint, or one contains the other.
using Sets = std::vector<const Pus*>;

void require_tree(const Sets& sets) {
  for (std::size_t i = 0; i < sets.size(); ++i) {
    for (std::size_t k = i + 1; k < sets.size(); ++k) {
      require(!intersects(*sets[i], *sets[k]) || contains(*sets[i], *sets[k]) ||
              contains(*sets[k], *sets[i]));
    }
  }
}

// hwloc's order goes down the tree, and by the first CPU among the children of an object. So an
// object's place is the first CPUs of all objects around it, from the outside, and then its own.
std::vector<int> place_in(const Sets& outside_first, const Pus& pus) {
  std::vector<int> place;
  for (const Pus* set : outside_first) {
    if (set->size() > pus.size() && contains(*set, pus)) place.push_back(set->front());
  }
  place.push_back(pus.front());
  return place;
}

template <typename Objects>
void sort_by_place(const Sets& outside_first, Objects& objects) {
  std::vector<std::pair<std::vector<int>, typename Objects::value_type>> keyed;
  for (auto& object : objects) {
    keyed.emplace_back(place_in(outside_first, object.pus), std::move(object));
  }
  std::sort(keyed.begin(), keyed.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  for (std::size_t i = 0; i < keyed.size(); ++i) objects[i] = std::move(keyed[i].second);
}

Machine read_regular(const Folder& system) {
  Cpus cpus{.folder = system / "cpu", .online = {}};
  const auto online = cpus.folder.list("online");
  require(online && !online->empty());
  cpus.online = *online;
  const Folder first = cpus.of(cpus.online.front());
  require(!first.has("topology/book_siblings"));  // s390: groups of packages

  const bool older = !first.has("topology/core_cpus");  // before Linux 5.3

  Machine machine;
  machine.packages = objects_of<Package>(
      partition_by(cpus, older ? "topology/core_siblings" : "topology/package_cpus"));
  machine.dies = read_dies(cpus, machine.packages);
  machine.l3 = objects_of<L3Domain>(read_l3(cpus));
  machine.nodes = read_nodes(system / "node", cpus.online);
  machine.cores = objects_of<Core>(
      partition_by(cpus, older ? "topology/thread_siblings" : "topology/core_cpus"));

  Sets sets;
  for (const Package& package : machine.packages) sets.push_back(&package.pus);
  for (const Die& die : machine.dies) sets.push_back(&die.pus);
  for (const NumaNode& node : machine.nodes) sets.push_back(&node.pus);
  for (const L3Domain& l3 : machine.l3) sets.push_back(&l3.pus);
  require_tree(sets);
  std::stable_sort(sets.begin(), sets.end(),
                   [](const Pus* a, const Pus* b) { return a->size() > b->size(); });
  std::vector<Pus> kept;  // the objects move while they are sorted
  for (const Pus* set : sets) kept.push_back(*set);
  for (std::size_t i = 0; i < sets.size(); ++i) sets[i] = &kept[i];
  for (const Core& core : machine.cores) {
    // Where a core may be several (AMD's compute units), they could be a chiplet.
    require(core.pus.size() == 1 ||
            std::none_of(machine.l3.begin(), machine.l3.end(),
                         [&](const L3Domain& l3) { return l3.pus == core.pus; }));
    require(std::all_of(sets.begin(), sets.end(), [&](const Pus* set) {
      return !intersects(*set, core.pus) || contains(*set, core.pus);
    }));
  }
  sort_by_place(sets, machine.packages);
  sort_by_place(sets, machine.dies);
  sort_by_place(sets, machine.nodes);
  sort_by_place(sets, machine.l3);
  sort_by_place(sets, machine.cores);
  require_plain_distances(system / "node", machine.nodes);
  machine.chiplets = find_chiplets(machine);
  return machine;
}

}  // namespace

std::optional<Machine> read_quickly(const std::string& root) {
  try {
    return read_regular(Folder(root + "/sys/devices/system"));
  } catch (const Irregular&) {
    return std::nullopt;
  }
}

}  // namespace atl::topology
