// Checks and prepares an input before hwloc reads it (declared in source.hpp).
#include <stdlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include "atoll/topology.hpp"
#include "source.hpp"

namespace atl::topology {
namespace {

namespace fs = std::filesystem;

// hwloc's largest recorded machines are 3 MB.
constexpr std::size_t most_xml_bytes = std::size_t{256} << 20;

bool skip(std::string_view& text, std::string_view opening, std::string_view closing) {
  if (!text.starts_with(opening)) return false;
  const std::size_t end = text.find(closing, opening.size());
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + closing.size());
  return true;
}

// Removes a byte-order mark, comments, carriage returns and everything before the root element:
// hwloc's own parser supports none of them and expects each declaration on a separate line.
std::string plain_xml(std::string_view rest) {
  if (rest.starts_with("\xef\xbb\xbf")) rest.remove_prefix(3);
  std::string plain;
  plain.reserve(rest.size());
  while (!rest.empty()) {
    if (skip(rest, "<!--", "-->")) continue;
    const std::size_t next = std::min(rest.find("<!--", 1), rest.size());
    plain.append(rest.substr(0, next));
    rest.remove_prefix(next);
  }
  std::replace(plain.begin(), plain.end(), '\r', ' ');
  std::string_view root = plain;
  for (;;) {
    root.remove_prefix(std::min(root.find_first_not_of(" \t\n"), root.size()));
    if (!skip(root, "<?", "?>") && !skip(root, "<!", ">")) break;
  }
  return std::string(root);
}

// The major version that the root element declares, or 1 if it declares none.
int major_version(std::string_view tag) {
  const std::size_t at = tag.find("version=");
  if (at == std::string_view::npos || at + 9 >= tag.size()) return 1;
  const std::string digits(tag.substr(at + 9, 3));
  return std::atoi(digits.c_str());
}

bool is_folder(const fs::path& path) {
  std::error_code fault;
  return fs::is_directory(path, fault);
}

bool has_cpus(const fs::path& system) {
  std::error_code fault;
  return is_folder(system / "cpu/cpu0") || fs::is_regular_file(system / "cpu/online", fault);
}

// Very old kernels list their CPUs only in /proc/cpuinfo.
bool has_cpuinfo(const fs::path& root) {
  std::ifstream file(root / "proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("processor") || line.starts_with("cpu")) return true;
  }
  return false;
}

bool is_root(const fs::path& path) {
  return has_cpus(path / "sys/devices/system") || has_cpuinfo(path);
}

bool is_capture(const fs::path& path) {
  return is_root(path) || has_cpus(path / "devices/system") || has_cpus(path);
}

fs::path only_subfolder(const fs::path& path) {
  fs::path only;
  std::error_code fault;
  for (const auto& entry : fs::directory_iterator(path, fault)) {
    if (!is_folder(entry.path()) || !is_capture(entry.path())) continue;
    if (!only.empty()) return {};
    only = entry.path();
  }
  return only;
}

}  // namespace

std::string read_xml_file(const std::string& path) {
  if (is_folder(path)) throw Fault(path + ": is a folder, not an XML file");
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Fault(path + ": cannot be read: " + std::strerror(errno));
  std::string text;
  std::string block(1 << 16, '\0');
  while (file.read(block.data(), static_cast<std::streamsize>(block.size())) || file.gcount() > 0) {
    text.append(block, 0, static_cast<std::size_t>(file.gcount()));
    if (text.size() > most_xml_bytes) break;
  }
  return text;
}

void accept_xml(Source& source) {
  const std::string& where = source.where;
  const std::string export_it = "; export one with 'lstopo OUT.xml' on that machine";
  if (source.xml.size() > most_xml_bytes) {
    throw Fault(where + ": is over 256 MiB, too large for a topology" + export_it);
  }
  if (source.xml.find_first_not_of(" \t\r\n") == std::string::npos) {
    throw Fault(where + ": is empty" + export_it);
  }
  if (source.xml.find('\0') != std::string::npos) {
    throw Fault(where + ": contains binary data, not XML" + export_it);
  }
  source.xml = plain_xml(source.xml);
  if (!source.xml.starts_with('<')) throw Fault(where + ": not hwloc XML" + export_it);
  const std::string_view tag = std::string_view(source.xml).substr(1, source.xml.find('>') - 1);
  const std::string name(tag.substr(0, tag.find_first_of(" \t\n/")));
  if (name == "topologydiff") {
    throw Fault(where + ": is a difference of two topologies, not a topology" + export_it);
  }
  if (name != "topology" && name != "root") throw Fault(where + ": not hwloc XML" + export_it);
  if (major_version(tag) >= 3) {
    throw Fault(where +
                ": was written by hwloc 3, which this hwloc cannot read; export it again on that "
                "machine with 'lstopo --export-xml-flags v2 OUT.xml'");
  }
}

void check_synthetic(const Source& source) {
  constexpr std::uint64_t most_pus = 65536;
  std::uint64_t pus = 1;
  int parentheses = 0;
  for (std::size_t at = 0; at < source.where.size(); ++at) {
    const char letter = source.where[at];
    parentheses += letter == '(' ? 1 : letter == ')' ? -1 : 0;
    // A level is 'Type:4' or just '4'; the digits of 'L3' are not a count.
    const bool starts_count = at == 0 || source.where[at - 1] == ':' || source.where[at - 1] == ' ';
    if (parentheses != 0 || !starts_count || letter < '0' || letter > '9') continue;
    const std::uint64_t count = std::strtoull(source.where.c_str() + at, nullptr, 10);
    pus *= std::min(count, most_pus + 1);
    if (pus > most_pus) throw Fault(subject_of(source) + ": describes over 65536 PUs");
  }
}

CapturedFolder::CapturedFolder(const std::string& where) {
  fs::path path = where;
  if (!is_folder(path)) throw Fault(where + ": not a readable folder");
  if (!is_capture(path)) path = only_subfolder(path);
  if (path.empty()) {
    throw Fault(where +
                ": contains no captured sysfs (sys/devices/system/cpu); make one with "
                "'hwloc-gather-topology OUT' on that machine and unpack OUT.tar.bz2");
  }
  std::error_code fault;
  path = fs::canonical(path, fault);
  if (fault) throw Fault(where + ": cannot be read: " + fault.message());
  if (is_root(path)) {
    root_ = path;
    return;
  }
  if (path.filename() == "sys" && path.has_parent_path() && is_root(path.parent_path())) {
    root_ = path.parent_path();
    return;
  }
  staging_.create();
  root_ = staging_.folder;
  if (has_cpus(path)) {
    fs::create_directories(root_ / "sys/devices", fault);
    staging_.link("sys/devices/system", path);
  } else {
    staging_.link("sys", path);
  }
}

void CapturedFolder::Staging::create() {
  std::error_code fault;
  std::string name = (fs::temp_directory_path(fault) / "atoll-sysfs-XXXXXX").string();
  if (fault || mkdtemp(name.data()) == nullptr) {
    throw Fault("cannot create a temporary folder; check that TMPDIR is writable");
  }
  folder = name;
}

void CapturedFolder::Staging::link(const char* name, const fs::path& target) const {
  std::error_code fault;
  fs::create_directory_symlink(target, folder / name, fault);
  if (fault) throw Fault((folder / name).string() + ": cannot be created: " + fault.message());
}

CapturedFolder::Staging::~Staging() {
  std::error_code ignored;
  if (!folder.empty()) fs::remove_all(folder, ignored);
}

}  // namespace atl::topology
