#include "locality.hpp"

#include <unistd.h>

#include <charconv>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <numeric>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>

namespace atl::workloads {
namespace {

namespace fs = std::filesystem;

// The number after `prefix`, if `text` is nothing else.
std::optional<std::uint64_t> number_behind(std::string_view text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return std::nullopt;
  std::uint64_t found = 0;
  const auto [end, fault] =
      std::from_chars(text.data() + prefix.size(), text.data() + text.size(), found);
  if (fault != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return found;
}

// The numbers N of the entries PREFIXN of a folder.
std::vector<int> numbered(const fs::path& folder, std::string_view prefix) {
  std::vector<int> found;
  std::error_code fault;
  for (const auto& entry : fs::directory_iterator(folder, fault)) {
    if (const auto number = number_behind(entry.path().filename().string(), prefix)) {
      found.push_back(static_cast<int>(*number));
    }
  }
  return found;
}

// The nodes of the threads that run now or wait for a page, without the caller's. A thread's state
// is field 3 of its stat, its CPU field 39 (proc(5)); its name, field 2, may contain blanks and
// parentheses.
std::vector<int> nodes_of_threads() {
  std::vector<int> nodes;
  for (const int thread : numbered("/proc/self/task", "")) {
    if (thread == gettid()) continue;
    std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
    std::string line;
    std::getline(file, line);
    const std::size_t name_end = line.rfind(')');
    if (name_end == std::string::npos) continue;  // it has ended
    std::istringstream fields(line.substr(name_end + 1));
    std::string state;
    std::string cpu;
    fields >> state;
    for (int field = 4; field <= 39; ++field) fields >> cpu;
    if (state != "R" && state != "D") continue;
    const std::vector<int> of_cpu = numbered("/sys/devices/system/cpu/cpu" + cpu, "node");
    if (!of_cpu.empty()) nodes.push_back(of_cpu.front());
  }
  return nodes;
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
                                  const std::vector<int>& nodes) {
  const std::uint64_t all = std::accumulate(bytes.begin(), bytes.end(), std::uint64_t{0});
  if (all == 0 || nodes.empty()) return std::nullopt;
  double near = 0;
  for (const int node : nodes) {
    const auto at = static_cast<std::size_t>(node);
    if (at < bytes.size()) near += static_cast<double>(bytes[at]);
  }
  return near / static_cast<double>(all) / static_cast<double>(nodes.size());
}

bool several_memory_nodes() { return numbered("/sys/devices/system/node", "node").size() > 1; }

std::optional<double> local_share_during(const std::function<void()>& work, double usual_s) {
  std::optional<double> found;
  std::mutex mutex;  // guards `ended`
  std::condition_variable end;
  bool ended = false;
  std::thread watcher([&] {
    for (int look = 0; look < 2; ++look) {
      {
        const std::chrono::duration<double> wait(usual_s / 4);
        std::unique_lock lock(mutex);
        if (end.wait_for(lock, wait, [&] { return ended; })) return;
      }
      const std::vector<int> nodes = nodes_of_threads();
      std::ifstream file("/proc/self/numa_maps");
      if (const auto now = local_share(bytes_by_node(file), nodes)) found = now;
    }
  });
  const auto stop = [&] {
    {
      const std::lock_guard lock(mutex);
      ended = true;
    }
    end.notify_one();
    watcher.join();
  };
  try {
    work();
  } catch (...) {
    stop();
    throw;
  }
  stop();
  return found;
}

}  // namespace atl::workloads
