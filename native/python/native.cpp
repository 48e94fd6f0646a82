// atoll._native: the native library as Python sees it. Thin: text in, text out.

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "atoll/topology.hpp"

namespace nb = nanobind;

NB_MODULE(_native, module) {
  nb::exception<atl::topology::Fault>(module, "TopologyFault");
  module.def("discover", &atl::topology::discover, nb::arg("kind"), nb::arg("where"),
             nb::call_guard<nb::gil_scoped_release>(),
             "The machine as JSON (format atoll/machine). Raises TopologyFault with one line.");
}
