// atoll._native: Python bindings of the native library, without logic; passes text and arrays.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <memory>
#include <system_error>
#include <vector>

#include "atoll/topology.hpp"
#include "page_cache.hpp"
#include "pages.hpp"

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
    // Ctrl-C also ends the reading child; that is not a fault of the topology.
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    throw;
  }
}

using Addresses = nb::ndarray<const std::uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <typename Element>
using Array = nb::ndarray<nb::numpy, Element, nb::ndim<1>>;

// Returns an array for Python that owns the vector's memory.
template <typename Element>
Array<Element> give(std::vector<Element>&& values) {
  auto held = std::make_unique<std::vector<Element>>(std::move(values));
  std::vector<Element>* vector = held.get();
  const nb::capsule owner(
      vector, [](void* pointer) noexcept { delete static_cast<std::vector<Element>*>(pointer); });
  held.release();
  return Array<Element>(vector->data(), {vector->size()}, owner);
}

// Python's OSError chooses the subclass (PermissionError, ProcessLookupError) by the number.
[[noreturn]] void raise(const std::system_error& fault) {
  const nb::tuple arguments = nb::make_tuple(fault.code().value(), fault.what());
  PyErr_SetObject(PyExc_OSError, arguments.ptr());
  throw nb::python_error();
}

Array<std::int32_t> page_nodes(int pid, const Addresses& addresses) {
  std::vector<std::int32_t> nodes(addresses.size());
  try {
    const nb::gil_scoped_release others_may_run;
    atl::inspect::page_nodes(pid, {addresses.data(), addresses.size()}, nodes);
  } catch (const std::system_error& fault) {
    raise(fault);
  }
  return give(std::move(nodes));
}

Array<std::int32_t> move_pages(int pid, const Addresses& addresses, int node) {
  std::vector<std::int32_t> status(addresses.size());
  try {
    const nb::gil_scoped_release others_may_run;
    atl::inspect::move_pages(pid, {addresses.data(), addresses.size()}, node, status);
  } catch (const std::system_error& fault) {
    raise(fault);
  }
  return give(std::move(status));
}

Array<std::uint8_t> huge_pages(int pid, const Addresses& addresses) {
  std::vector<std::uint8_t> huge(addresses.size());
  try {
    const nb::gil_scoped_release others_may_run;
    atl::inspect::huge_pages(pid, {addresses.data(), addresses.size()}, huge);
  } catch (const std::system_error& fault) {
    raise(fault);
  }
  return give(std::move(huge));
}

nb::tuple cached_nodes(const std::string& path, std::uint64_t most_pages) {
  atl::inspect::FilePages found;
  try {
    const nb::gil_scoped_release others_may_run;
    found = atl::inspect::cached_nodes(path, most_pages);
  } catch (const std::system_error& fault) {
    raise(fault);
  }
  return nb::make_tuple(found.size_bytes, found.cached_pages, give(std::move(found.nodes)));
}

}  // namespace

NB_MODULE(_native, module) {
  // The derived class after its base, because the last registered is tried first.
  nb::exception<atl::topology::Fault>(module, "TopologyFault");
  nb::exception<atl::topology::OwnFault>(module, "OwnFault");
  module.def("discover", &discover, nb::arg("kind"), nb::arg("where"),
             nb::arg("content") = nb::none(),
             "Return the machine as JSON (format atoll/machine). Raise TopologyFault or OwnFault "
             "with a message of one line.");
  module.def("page_nodes", &page_nodes, nb::arg("pid"), nb::arg("addresses"),
             "Return each address's memory node, or a negative errno. Raise OSError.");
  module.def("move_pages", &move_pages, nb::arg("pid"), nb::arg("addresses"), nb::arg("node"),
             "Move pages that no other process maps to the node. Return as page_nodes. Raise "
             "OSError.");
  module.def("huge_pages", &huge_pages, nb::arg("pid"), nb::arg("addresses"),
             "Return 1 for each address that a huge page maps, else 0. Raise OSError.");
  module.def("cached_nodes", &cached_nodes, nb::arg("path"), nb::arg("most_pages"),
             "Return (bytes, cached pages, nodes of the checked pages). Raise OSError.");
}
