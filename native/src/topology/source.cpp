#include "source.hpp"

#include "atoll/topology.hpp"
#include "child.hpp"

namespace atl::topology {

std::string subject_of(const Source& source) {
  switch (source.kind) {
    case Kind::live: return "this machine";
    case Kind::synthetic: return "synthetic topology '" + source.where.substr(0, 120) + "'";
    case Kind::xml:
    case Kind::sysfs: break;
  }
  return source.where;
}

void prepare_environment(const Source& source) {
  // With these set hwloc would silently read a different machine from the requested one.
  for (const char* name : {"HWLOC_XMLFILE", "HWLOC_SYNTHETIC", "HWLOC_FSROOT", "HWLOC_CPUID_PATH",
                           "HWLOC_COMPONENTS", "HWLOC_THISSYSTEM", "HWLOC_DUMPED_HWDATA_DIR"}) {
    unsetenv(name);
  }
  // Plugins cost milliseconds (GPUs), and hwloc cannot use them inside a Python module. So hwloc
  // always reads XML with its own small parser; files.cpp removes what that parser rejects.
  setenv("HWLOC_PLUGINS_PATH", "/nonexistent", 1);
  setenv("HWLOC_LIBXML", "0", 1);
  // hwloc prints its reasons to the captured stderr; our message quotes them.
  setenv("HWLOC_SYNTHETIC_VERBOSE", "1", 1);
  setenv("HWLOC_XML_VERBOSE", "1", 1);
  if (source.kind == Kind::sysfs) {
    setenv("HWLOC_FSROOT", source.filesystem.c_str(), 1);
    // As in hwloc's tools for a folder, so that no data of this machine gets in.
    setenv("HWLOC_COMPONENTS", "linux,stop", 1);
    setenv("HWLOC_DUMPED_HWDATA_DIR", "/var/run/hwloc", 1);
  }
}

Topology load(const Source& source, bool whole) {
  const auto fail = [&](const std::string& what) {
    std::string said = first_line(Progress::printed());
    if (said.starts_with("Failed to parse XML input with the minimalistic")) said.clear();
    throw Fault(subject_of(source) + ": " + what + (said.empty() ? "" : " (hwloc: " + said + ")"));
  };
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) throw Fault("hwloc cannot start (out of memory?)");
  Topology topology(raw);
  hwloc_topology_set_all_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_ALL);
  // On a live system I/O objects cost ten times the rest, and sysfs lists the NICs.
  hwloc_topology_set_io_types_filter(
      raw, source.kind == Kind::xml ? HWLOC_TYPE_FILTER_KEEP_ALL : HWLOC_TYPE_FILTER_KEEP_NONE);
  hwloc_topology_set_type_filter(raw, HWLOC_OBJ_GROUP, HWLOC_TYPE_FILTER_KEEP_STRUCTURE);
  hwloc_topology_set_type_filter(raw, HWLOC_OBJ_MISC, HWLOC_TYPE_FILTER_KEEP_NONE);
  unsigned long flags = HWLOC_TOPOLOGY_FLAG_NO_MEMATTRS | HWLOC_TOPOLOGY_FLAG_NO_CPUKINDS;
  if (whole) flags |= HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED;
  hwloc_topology_set_flags(raw, flags);

  if (source.kind == Kind::synthetic &&
      hwloc_topology_set_synthetic(raw, source.where.c_str()) != 0) {
    fail("not an hwloc synthetic description; use for example 'Package:2 L3Cache:4 Core:8 PU:2'");
  }
  if (source.kind == Kind::xml &&
      // The length includes the terminating NUL, as in hwloc's own exports.
      hwloc_topology_set_xmlbuffer(raw, source.xml.c_str(),
                                   static_cast<int>(source.xml.size() + 1)) != 0) {
    fail("cannot be parsed as hwloc XML; export it again with 'lstopo OUT.xml'");
  }
  if (hwloc_topology_load(raw) != 0) {
    fail(source.kind == Kind::xml
             ? "is truncated or damaged hwloc XML; export it again with 'lstopo OUT.xml'"
             : "hwloc cannot read it");
  }
  return topology;
}

}  // namespace atl::topology
