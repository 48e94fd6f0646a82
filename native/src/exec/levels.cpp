#include "levels.hpp"

#include <cctype>

namespace atl::exec {
namespace {

// hwloc accepts any prefix of a type name of at least this length (hwloc_type_sscanf).
struct TypeName {
  std::string_view name;
  std::size_t shortest;
  Level level;
};
constexpr TypeName kTypeNames[] = {
    {"machine", 2, Level::kMachine}, {"numanode", 2, Level::kNumaNode},
    {"node", 2, Level::kNumaNode},   {"package", 2, Level::kPackage},
    {"socket", 2, Level::kPackage},  {"die", 2, Level::kDie},
    {"core", 2, Level::kCore},       {"pu", 2, Level::kPu},
    {"chiplet", 3, Level::kChiplet},
};

// "l2", "L2Cache", "l1d", "l3u", "l1i", "l1icache": kind and the start of "cache" are optional.
std::optional<Level> cache_level(std::string_view name) {
  if (name.size() < 2 || name[0] != 'l' || name[1] < '1' || name[1] > '5') {
    return std::nullopt;
  }
  const auto depth = static_cast<std::size_t>(name[1] - '1');
  std::string_view rest = name.substr(2);
  const bool instruction = rest.starts_with('i');
  if (instruction || rest.starts_with('d') || rest.starts_with('u')) {
    rest.remove_prefix(1);
  }
  if (!std::string_view("cache").starts_with(rest) || (instruction && depth > 2)) {
    return std::nullopt;
  }
  const Level first = instruction ? Level::kL1i : Level::kL1;
  return static_cast<Level>(static_cast<std::size_t>(first) + depth);
}

}  // namespace

std::optional<Level> level_named(std::string_view type) {
  const std::string name = lower(type);
  for (const TypeName& known : kTypeNames) {
    if (name.size() >= known.shortest && known.name.starts_with(name)) {
      return known.level;
    }
  }
  return cache_level(name);
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& letter : result) {
    letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  return result;
}

}  // namespace atl::exec
