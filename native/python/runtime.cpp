// atoll._runtime: Python bindings of the runtime's places and mapping, without logic; see
// atoll.runtime.

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "atoll/runtime/mapping.hpp"
#include "atoll/runtime/places.hpp"
#include "places/cpu_limit.hpp"

namespace nb = nanobind;

namespace {

atl::Places places_here() {
  try {
    const nb::gil_scoped_release others_may_run;
    return atl::places_here();
  } catch (const std::exception&) {
    // Ctrl-C also ends the reading child; that is not a fault of the topology.
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    throw;
  }
}

}  // namespace

NB_MODULE(_runtime, module) {
  nb::class_<atl::Core>(module, "Core")
      .def_ro("cpus", &atl::Core::cpus)
      .def_ro("chiplet", &atl::Core::chiplet)
      .def_ro("node", &atl::Core::node)
      .def_ro("package", &atl::Core::package);
  nb::class_<atl::Places>(module, "Places")
      .def_ro("cores", &atl::Places::cores)
      .def_ro("chiplet_levels", &atl::Places::chiplet_levels)
      .def_ro("chiplet_l3_bytes", &atl::Places::chiplet_l3_bytes)
      .def_ro("made_up", &atl::Places::made_up)
      .def_prop_ro("chiplets", &atl::Places::chiplets)
      .def_prop_ro("nodes", &atl::Places::nodes)
      .def_prop_ro("workers",
                   [](const atl::Places& places) { return atl::runtime::default_workers(places); })
      .def("__repr__", [](const atl::Places& places) {
        return "<Places cores=" + std::to_string(places.cores.size()) +
               " chiplets=" + std::to_string(places.chiplets()) +
               " nodes=" + std::to_string(places.nodes().size()) +
               (places.made_up ? " made up>" : ">");
      });
  module.def("places_here", &places_here);
  module.def("synthetic_places", [](const std::string& words, const std::vector<int>& cpus) {
    return atl::synthetic_places(words, cpus);
  });
  module.def("places_from_machine",
             [](const std::string& json) { return atl::places_from_machine(json); });
  module.def("spread_cores", &atl::spread_cores);
}
