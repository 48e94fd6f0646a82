// Sources of a topology: this system, hwloc XML, a synthetic string or a captured folder.
#pragma once

#include <hwloc.h>

#include <filesystem>
#include <memory>
#include <string>

#include "model.hpp"

namespace atl::topology {

struct Source {
  Kind kind = Kind::live;
  std::string where;                 // path or synthetic string, as the user gave it
  std::string xml;                   // kind xml: the file's bytes
  std::filesystem::path filesystem;  // kind sysfs: the folder that stands for "/"
};

// The name of the source in messages.
std::string subject_of(const Source& source);

// Throws Fault for anything but hwloc-1 or hwloc-2 XML (for hwloc 3 the message has the command
// that helps). Leaves in `source.xml` only what hwloc's own parser supports.
void accept_xml(Source& source);

// Throws Fault for a synthetic string with over 65,536 PUs, which would take hwloc minutes.
void check_synthetic(const Source& source);

std::string read_xml_file(const std::string& path);

// A captured folder in the form hwloc needs, with sys/devices/system below it. If the folder is
// itself a sysfs, or only its devices/system, a temporary folder links to it.
class CapturedFolder {
 public:
  explicit CapturedFolder(const std::string& where);
  [[nodiscard]] const std::filesystem::path& root() const { return root_; }

 private:
  class Staging {
   public:
    Staging() = default;
    Staging(const Staging&) = delete;
    Staging& operator=(const Staging&) = delete;
    ~Staging();
    void create();
    void link(const char* name, const std::filesystem::path& target) const;
    std::filesystem::path folder;
  };
  Staging staging_;
  std::filesystem::path root_;
};

struct DestroyTopology {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
using Topology = std::unique_ptr<hwloc_topology, DestroyTopology>;

// Sets the variables that control hwloc. Call it once, in the child only.
void prepare_environment(const Source& source);

// `whole` includes objects that the cgroup disallows, which hwloc's tools hide by default.
Topology load(const Source& source, bool whole);

}  // namespace atl::topology
