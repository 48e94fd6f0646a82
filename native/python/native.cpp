// atoll._native: the native library as Python sees it. Thin: text in, text out.

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "atoll/topology.hpp"

namespace nb = nanobind;

namespace {

std::string discover(const std::string& kind, const std::string& where,
                     const std::optional<nb::bytes>& content) {
  std::string xml;
  if (content) xml.assign(content->c_str(), content->size());
  try {
    const nb::gil_scoped_release others_may_run;
    return content ? atl::topology::discover_xml(xml, where) : atl::topology::discover(kind, where);
  } catch (const atl::topology::Fault&) {
    // Ctrl-C also ends the child that reads; then it is no fault of the topology.
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    throw;
  }
}

}  // namespace

NB_MODULE(_native, module) {
  // The derived one after its base: the last registered is asked first.
  nb::exception<atl::topology::Fault>(module, "TopologyFault");
  nb::exception<atl::topology::OwnFault>(module, "OwnFault");
  module.def("discover", &discover, nb::arg("kind"), nb::arg("where"),
             nb::arg("content") = nb::none(),
             "The machine as JSON (format atoll/machine). Raises TopologyFault or OwnFault with "
             "one line.");
}
