// Fuzz target: any bytes, read as a machine file, a profile or a synthetic description, give places
// or a RuntimeFault of one line; and the places can be mapped.
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>

#include "atoll/runtime/mapping.hpp"
#include "atoll/runtime/places.hpp"
#include "atoll/runtime/victims.hpp"

namespace {

void stop(std::string_view why) {
  std::cerr << why << '\n';
  std::abort();
}

template <typename Make>
void make_places(Make make) {
  try {
    const atl::Places places = make();
    const int cores = static_cast<int>(places.cores.size());
    if (cores < 1) stop("places without a core");
    const std::vector<int> ranks = atl::spread_cores(places, cores, places.chiplets());
    if (atl::victims(places, ranks, 0).workers.size() + 1 != ranks.size()) stop("victims");
  } catch (const atl::RuntimeFault& fault) {
    if (std::string_view(fault.what()).find('\n') != std::string_view::npos) stop(fault.what());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(data, data + size);
  static const atl::Places measured = atl::synthetic_places("package:2 chiplet:4 core:4", {});
  make_places([&] { return atl::places_from_machine(text); });
  make_places([&] { return atl::places_with_profile(measured, text); });
  make_places([&] { return atl::synthetic_places(text, {}); });
  return 0;
}
