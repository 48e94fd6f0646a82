#include "place_topology.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "fault.hpp"
#include "quick.hpp"

namespace atl::exec {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxCpu = 1U << 20;  // far above any kernel's NR_CPUS; limits the allocation

CpuSet cpus_of(const json& object) {
  CpuSet set;
  for (const json& index : object.at("pus")) {
    const auto cpu = index.get<std::size_t>();
    if (!index.is_number_unsigned() || cpu > kMaxCpu) {
      throw json::other_error::create(501, "a CPU number is out of range", nullptr);
    }
    set.insert(cpu);
  }
  return set;
}

std::vector<Object> objects_of(const json& list) {
  std::vector<Object> objects;
  for (const json& object : list) {
    // A place names objects by index, so the order in the file must match the indices.
    if (object.at("index").get<std::size_t>() != objects.size()) {
      throw json::other_error::create(501, "objects are not in index order", nullptr);
    }
    objects.push_back({cpus_of(object)});
  }
  return objects;
}

Level level_of_cache(std::size_t depth, const std::string& kind) {
  const std::size_t deepest = kind == "instruction" ? 3 : 5;
  if (depth < 1 || depth > deepest) {
    throw json::other_error::create(501, "a cache's level is out of range", nullptr);
  }
  const Level first = kind == "instruction" ? Level::kL1i : Level::kL1;
  return static_cast<Level>(static_cast<std::size_t>(first) + depth - 1);
}

PlaceTopology topology_of(const json& machine, const CpuSet& usable) {
  PlaceTopology topology;
  topology[Level::kPackage] = objects_of(machine.at("packages"));
  topology[Level::kDie] = objects_of(machine.at("dies"));
  topology[Level::kNumaNode] = objects_of(machine.at("nodes"));
  topology[Level::kCore] = objects_of(machine.at("cores"));
  topology[Level::kChiplet] = objects_of(machine.at("chiplets"));
  for (const json& cache : machine.at("caches")) {
    const Level level =
        level_of_cache(cache.at("level").get<std::size_t>(), cache.at("kind").get<std::string>());
    topology[level].push_back({cpus_of(cache)});
  }
  Object whole;
  for (const Object& core : topology[Level::kCore]) {
    whole.cpus |= core.cpus;
    for (const std::size_t cpu : core.cpus.members()) {
      Object pu;
      pu.cpus.insert(cpu);
      topology[Level::kPu].push_back(std::move(pu));
    }
  }
  for (std::size_t index = 0; index < topology[Level::kNumaNode].size(); ++index) {
    const json& package = machine.at("nodes").at(index).at("package");
    topology[Level::kNumaNode][index].near_cpus =
        package.is_null() ? whole.cpus
                          : topology[Level::kPackage].at(package.get<std::size_t>()).cpus;
  }
  topology.usable = usable;
  topology.usable &= whole.cpus;
  topology[Level::kMachine].push_back(std::move(whole));
  return topology;
}

constexpr std::array kQuickLevels = {Level::kMachine,  Level::kPackage, Level::kDie,
                                     Level::kNumaNode, Level::kL3,      Level::kChiplet};

template <typename Items>
std::vector<Object> objects_from(const Items& items) {
  std::vector<Object> objects;
  for (const auto& item : items) {
    Object object;
    for (const int cpu : item.pus) {
      object.cpus.insert(static_cast<std::size_t>(cpu));
    }
    objects.push_back(std::move(object));
  }
  return objects;
}

std::string folder_of_executable() {
  std::array<char, PATH_MAX> path{};
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size());
  const std::string_view whole(path.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
  return std::string(whole.substr(0, whole.rfind('/')));
}

// ATOLL_TOPOLOGY_FOLDERS (CMakeLists.txt): the library's folders relative to the executable, in
// the build tree and once installed. Not a search path of the loader, because the loader would
// also search it for libc at every start.
std::string topology_library() {
  constexpr std::string_view kFolders = ATOLL_TOPOLOGY_FOLDERS;
  const std::string here = folder_of_executable();
  for (std::string_view rest = kFolders; !rest.empty();) {
    const std::size_t colon = rest.find(':');
    const std::string path =
        here + "/" + std::string(rest.substr(0, colon)) + "/libatoll-topology.so";
    if (access(path.c_str(), R_OK) == 0) {
      return path;
    }
    rest.remove_prefix(colon == std::string_view::npos ? rest.size() : colon + 1);
  }
  throw Fault("libatoll-topology.so is missing from this installation of atoll-exec (" + here +
              "), and places need it; reinstall atoll, or describe the machine with "
              "--machine FILE");
}

}  // namespace

PlaceTopology parse_machine(std::string_view text, const std::string& where, const CpuSet& usable) {
  const json machine = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (machine.is_discarded()) {
    throw Fault(where + ": not JSON; create it with 'atoll topo --json'");
  }
  if (!machine.is_object() || machine.value("format", json()) != "atoll/machine") {
    throw Fault(where + ": not an atoll/machine file; create it with 'atoll topo --json'");
  }
  if (machine.value("version", json()) != 1) {
    throw Fault(where + ": this atoll-exec reads atoll/machine version 1, not " +
                machine.value("version", json()).dump() + "; create it again with this atoll");
  }
  try {
    return topology_of(machine, usable);
  } catch (const std::exception& fault) {  // from json, or from .at() with a bad index
    std::string_view why = fault.what();
    if (why.starts_with('[')) {  // nlohmann's prefix "[json.exception.type_error.302] "
      why.remove_prefix(std::min(why.size(), why.find(']') + 2));
    }
    throw Fault(where + ": not a valid atoll/machine file: " + std::string(why));
  }
}

std::string read_machine_file(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  std::string text;
  std::array<char, 65536> buffer;
  ssize_t count = file < 0 ? -1 : 0;
  while (file >= 0 && (count = read(file, buffer.data(), buffer.size())) > 0) {
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  const int error = errno;
  if (file >= 0) {
    close(file);
  }
  if (count < 0) {
    throw Fault("--machine " + path + ": " + std::strerror(error));
  }
  return text;
}

std::optional<PlaceTopology> quick_machine(std::span<const Level> levels, const CpuSet& usable) {
  const bool enough = std::all_of(levels.begin(), levels.end(), [](Level level) {
    return std::find(kQuickLevels.begin(), kQuickLevels.end(), level) != kQuickLevels.end();
  });
  const auto machine = enough ? topology::read_quickly("") : std::nullopt;
  if (!machine) {
    return std::nullopt;
  }
  PlaceTopology topology;
  topology[Level::kPackage] = objects_from(machine->packages);
  topology[Level::kDie] = objects_from(machine->dies);
  topology[Level::kNumaNode] = objects_from(machine->nodes);
  topology[Level::kL3] = objects_from(machine->l3);
  topology[Level::kChiplet] = objects_from(machine->chiplets);
  Object whole;
  for (const Object& package : topology[Level::kPackage]) {
    whole.cpus |= package.cpus;
  }
  topology.usable = usable;
  topology.usable &= whole.cpus;
  topology[Level::kMachine].push_back(std::move(whole));
  return topology;
}

std::string live_machine() {
  const std::string path = topology_library();
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  // The C function of native/include/atoll/topology.hpp for callers that load the library.
  using Discover = int (*)(const char* kind, const char* where, char** text);
  const auto discover = library == nullptr
                            ? nullptr
                            : reinterpret_cast<Discover>(dlsym(library, "atoll_topology_discover"));
  if (discover == nullptr) {
    throw Fault(std::string("the topology library cannot be loaded: ") + dlerror());
  }
  char* text = nullptr;
  const int failed = discover("live", "", &text);
  const std::unique_ptr<char, decltype(&std::free)> owner(text, &std::free);
  if (failed != 0 || text == nullptr) {
    throw Fault(std::string("this machine's topology cannot be read: ") +
                (text == nullptr ? "no reason given" : text));
  }
  return text;  // the library stays loaded until exec
}

}  // namespace atl::exec
