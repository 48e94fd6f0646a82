// The instruction sets that the kernels have loops for, and which of them this CPU runs.
#pragma once

#include <string_view>

namespace atl::probe {

enum class Isa { scalar, sse2, avx2, avx512, neon };

[[nodiscard]] bool isa_runs_here(Isa isa);
// The one with the widest vectors that runs here.
[[nodiscard]] Isa best_isa();
[[nodiscard]] std::string_view name_of(Isa isa);

}  // namespace atl::probe
