// Fuzz target: any bytes as an XML file give a machine or a Fault that is the input's, never a
// crash of ours. hwloc may crash in its child; that is a Fault. A crash of our code in the
// child arrives as OwnFault, which is what this target looks for.
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>

#include "atoll/topology.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string content(data, data + size);
  try {
    const std::string json = atl::topology::discover_xml(content, "fuzz.xml");
    if (!json.starts_with("{\"summary\":")) {
      std::cerr << "no machine: " << json.substr(0, 80) << '\n';
      std::abort();
    }
  } catch (const atl::topology::OwnFault& fault) {
    std::cerr << fault.what() << '\n';
    std::abort();
  } catch (const atl::topology::Fault&) {
  }
  return 0;
}
