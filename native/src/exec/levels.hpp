// The names of levels in places: hwloc's object types and `chiplet`. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "places.hpp"

namespace atl::exec {

// For messages.
inline constexpr std::string_view kLevelNames =
    "machine, package, die, numanode, l1 to l5, l1i to l3i, core, pu, chiplet";

// Returns the level with this name or short form, in any case of letters.
[[nodiscard]] std::optional<Level> level_named(std::string_view type);

[[nodiscard]] std::string lower(std::string_view text);

}  // namespace atl::exec
