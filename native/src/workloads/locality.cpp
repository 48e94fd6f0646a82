#include "locality.hpp"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace atl::workloads {
namespace {

// The number after `prefix`, if `text` is nothing else.
std::optional<std::uint64_t> number_behind(std::string_view text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return std::nullopt;
  std::uint64_t found = 0;
  const auto [end, fault] =
      std::from_chars(text.data() + prefix.size(), text.data() + text.size(), found);
  if (fault != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return found;
}

// The memory node on which the caller runs.
std::size_t own_node() {
  unsigned node = 0;
  getcpu(nullptr, &node);  // fails only for a bad address
  return node;
}

std::uint64_t sum(const std::vector<std::uint64_t>& bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), std::uint64_t{0});
}

}  // namespace

std::vector<std::uint64_t> bytes_by_node(std::istream& numa_maps) {
  std::vector<std::uint64_t> bytes;
  std::string line;
  while (std::getline(numa_maps, line)) {
    std::vector<std::pair<std::size_t, std::uint64_t>> pages;  // (node, pages)
    std::uint64_t page_kb = 0;                                 // comes last
    bool of_file = false;                                      // such as a library
    std::istringstream words(line);
    std::string word;
    while (words >> word) {
      const std::size_t equals = word.find('=');
      if (equals == std::string::npos) continue;
      const std::string_view value = std::string_view(word).substr(equals + 1);
      if (word.starts_with("file=")) {
        of_file = true;
      } else if (word.starts_with("kernelpagesize_kB=")) {
        page_kb = number_behind(value, "").value_or(0);
      } else if (const auto node = number_behind(word.substr(0, equals), "N")) {
        pages.emplace_back(*node, number_behind(value, "").value_or(0));
      }
    }
    if (of_file) continue;
    for (const auto& [node, count] : pages) {
      if (bytes.size() <= node) bytes.resize(node + 1);
      bytes[node] += count * page_kb * 1024;
    }
  }
  return bytes;
}

std::optional<double> local_share(const std::vector<std::uint64_t>& bytes,
                                  const std::vector<double>& work) {
  const auto all = static_cast<double>(sum(bytes));
  const double done = std::accumulate(work.begin(), work.end(), 0.0);
  if (all == 0 || done == 0) return std::nullopt;
  double near = 0;
  for (std::size_t node = 0; node < std::min(bytes.size(), work.size()); ++node) {
    near += work[node] / done * (static_cast<double>(bytes[node]) / all);
  }
  return near;
}

bool several_memory_nodes() {
  int nodes = 0;
  std::error_code fault;
  for (const auto& entry : std::filesystem::directory_iterator("/sys/devices/system/node", fault)) {
    if (number_behind(entry.path().filename().string(), "node")) ++nodes;
  }
  return nodes > 1;
}

void WatchedTeam::watch() {
  watched_ = true;
  since_ = std::chrono::steady_clock::now();
}

std::optional<double> WatchedTeam::local_share() const {
  return workloads::local_share(bytes_, work_);
}

void WatchedTeam::count(std::size_t items) {
  const std::size_t node = own_node();
  const std::lock_guard lock(mutex_);
  if (items_.size() <= node) items_.resize(node + 1);
  items_[node] += static_cast<double>(items);
}

void WatchedTeam::look() {
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - since_;
  const double all = std::accumulate(items_.begin(), items_.end(), 0.0);
  if (work_.size() < items_.size()) work_.resize(items_.size());
  for (std::size_t node = 0; node < items_.size(); ++node) {
    work_[node] += took.count() * items_[node] / all;
  }
  items_.clear();
  std::ifstream file("/proc/self/numa_maps");
  if (auto bytes = bytes_by_node(file); sum(bytes) >= sum(bytes_)) bytes_ = std::move(bytes);
  since_ = std::chrono::steady_clock::now();
}

}  // namespace atl::workloads
