#include "cgroup.hpp"

#include <fstream>
#include <optional>
#include <sstream>

namespace atl::base {
namespace {

namespace fs = std::filesystem;

struct CgroupMount {
  fs::path mounted_at;
  fs::path mounted_part;  // the part of the hierarchy that is mounted
};

bool lists(const std::string& words, const std::string& word) {
  return (',' + words + ',').find(',' + word + ',') != std::string::npos;
}

// The mount of cgroup v2 (`controller` empty) or of a v1 controller.
std::optional<CgroupMount> cgroup_mount(const fs::path& root, const std::string& controller) {
  std::ifstream mounts(root / "proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream fields(line);
    std::string skip;
    std::string part;
    std::string at;
    fields >> skip >> skip >> skip >> part >> at;
    std::string type;
    while (fields >> skip && skip != "-") {
    }
    std::string options;
    fields >> type >> skip >> options;
    const bool wanted =
        controller.empty() ? type == "cgroup2" : type == "cgroup" && lists(options, controller);
    if (wanted) return CgroupMount{root / fs::path(at).relative_path(), part};
  }
  return std::nullopt;
}

}  // namespace

void each_cgroup(const fs::path& root, const std::string& controller,
                 const std::function<void(const fs::path& folder, bool unified)>& look) {
  std::ifstream groups(root / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool unified = controllers.empty();
    if (!unified && !lists(controllers, controller)) continue;
    const std::optional<CgroupMount> mount = cgroup_mount(root, unified ? "" : controller);
    if (!mount) continue;
    const fs::path group = line.substr(second + 1);
    fs::path relative = group.lexically_relative(mount->mounted_part);
    // Without a cgroup namespace a container sees the host's path but mounts only its own part.
    if (relative.empty() || *relative.begin() == "..") relative = ".";
    for (fs::path at = (mount->mounted_at / relative).lexically_normal();; at = at.parent_path()) {
      look(at, unified);
      const std::string here = at.lexically_relative(mount->mounted_at).string();
      if (here == "." || here.empty() || at == at.parent_path()) break;
    }
  }
}

}  // namespace atl::base
