// RandomAccess of the HPC Challenge: random updates of a large table.
#pragma once

#include <cstdint>

#include "arrays.hpp"
#include "team.hpp"
#include "workload.hpp"

namespace atl::kernels {

[[nodiscard]] const Workload& gups();

// The check of a run: does all updates of the table once more, without losing any, and returns how
// many entries are then not their own index, as they were before the run.
[[nodiscard]] std::uint64_t undo_updates(Team& team, Array<std::uint64_t>& table);

}  // namespace atl::kernels
