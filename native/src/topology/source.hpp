// Sources of a topology: this system, hwloc XML, a synthetic string, a captured folder.
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

// `where` as messages name it.
std::string subject_of(const Source& source);

// Refuses what is no hwloc-1 or hwloc-2 XML (for hwloc 3 it names the command that helps), and
// leaves in `source.xml` what hwloc's own parser understands.
void accept_xml(Source& source);

// Refuses a synthetic string over 65,536 PUs, for which hwloc would need minutes.
void check_synthetic(const Source& source);

std::string read_xml_file(const std::string& path);

// A captured folder, as hwloc wants it: with sys/devices/system below. Where the folder is
// itself a sysfs, or only its devices/system, links in a temporary folder stand in.
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

// Sets the variables that steer hwloc. To be called once, in the child only.
void prepare_environment(const Source& source);

// `whole`: also what the cgroup disallows, instead of what hwloc's tools show by default.
Topology load(const Source& source, bool whole);

}  // namespace atl::topology
