// Divides contiguous memory among threads, one contiguous part for each.
#pragma once

#include <cstddef>

namespace atl::probe {

struct Part {
  std::size_t begin;
  std::size_t end;
};
// Part `index` of `parts` of `count` things. Parts begin at multiples of `granule`, cover
// everything once and differ in size by at most one granule. The last parts may be empty.
[[nodiscard]] constexpr Part part_of(std::size_t count, std::size_t parts, std::size_t index,
                                     std::size_t granule) {
  const std::size_t granules = count / granule + (count % granule != 0 ? 1 : 0);
  const std::size_t share = granules / parts;
  const std::size_t rest = granules % parts;
  const auto edge = [&](std::size_t part) {
    const std::size_t at = (share * part + (part < rest ? part : rest)) * granule;
    return at < count ? at : count;
  };
  return {edge(index), edge(index + 1)};
}

}  // namespace atl::probe
