// The instruction sets for which the kernels have loops, and which of them this CPU supports.
#pragma once

#include <string_view>

namespace atl::probe {

enum class Isa { scalar, sse2, avx2, avx512, neon };

[[nodiscard]] bool isa_runs_here(Isa isa);
// The supported instruction set with the widest vectors.
[[nodiscard]] Isa best_isa();
[[nodiscard]] std::string_view name_of(Isa isa);

}  // namespace atl::probe
