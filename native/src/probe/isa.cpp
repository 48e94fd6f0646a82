#include "isa.hpp"

namespace atl::probe {

// libgcc checks cpuid and, with xgetbv, whether the system saves the registers.
bool isa_runs_here(Isa isa) {
  switch (isa) {
    case Isa::scalar: return true;
#if defined(__x86_64__)
    case Isa::sse2: return true;
    case Isa::avx2: return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    case Isa::avx512: return __builtin_cpu_supports("avx512f") != 0;
    case Isa::neon: return false;
#else
    case Isa::sse2:
    case Isa::avx2:
    case Isa::avx512: return false;
#if defined(__aarch64__)
    case Isa::neon: return true;
#else
    case Isa::neon: return false;
#endif
#endif
  }
  return false;
}

Isa best_isa() {
  for (const Isa isa : {Isa::avx512, Isa::avx2, Isa::sse2, Isa::neon}) {
    if (isa_runs_here(isa)) return isa;
  }
  return Isa::scalar;
}

std::string_view name_of(Isa isa) {
  switch (isa) {
    case Isa::scalar: return "scalar";
    case Isa::sse2: return "sse2";
    case Isa::avx2: return "avx2";
    case Isa::avx512: return "avx512";
    case Isa::neon: return "neon";
  }
  return "";
}

}  // namespace atl::probe
