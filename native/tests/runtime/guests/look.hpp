// Prints what the kernel reports about this process's threads and pages, in the kernel's own
// format, for tests/vm/looks.py to read and judge.
//
//   look LABEL
//   rank R TID                    which thread is which worker
//   task TID MASK CPU_NS POLICY   of every thread: Cpus_allowed_list, time on a CPU, memory policy
//   range LABEL BEGIN END         hexadecimal; what was made and touched
//   maps, the lines of numa_maps, end
#pragma once

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "atoll/runtime/all_do.hpp"
#include "atoll/runtime/runtime.hpp"

namespace guest {

inline void print_range(const std::string& label, const void* begin, std::size_t bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  std::cout << "range " << label << std::hex << ' ' << address << ' ' << address + bytes << std::dec
            << '\n';
}

inline void print_maps() {
  std::ifstream kernels("/proc/self/numa_maps");
  std::cout << "maps\n" << kernels.rdbuf() << "end\n" << std::flush;
}

// The rest of the line that begins with `key`.
inline std::string value_in(const std::filesystem::path& file, const std::string& key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(key)) continue;
    std::istringstream rest(line.substr(key.size()));
    std::string value;
    rest >> value;
    return value;
  }
  return "-";
}

inline void print_tasks() {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string cpu_ns = "-", at, policy = "-";
    std::ifstream(task.path() / "schedstat") >> cpu_ns;
    // The first mapping is the program's code, which has no policy of its own; the kernel then
    // shows the thread's.
    std::ifstream(task.path() / "numa_maps") >> at >> policy;
    std::cout << "task " << task.path().filename().string() << ' '
              << value_in(task.path() / "status", "Cpus_allowed_list:") << ' ' << cpu_ns << ' '
              << policy << '\n';
  }
}

// Pages that no one had before. A page that may not be used at both ends keeps the kernel from
// showing two of them as one mapping.
class FreshPages {
 public:
  static constexpr std::size_t kBytes = std::size_t{256} << 10;

  FreshPages() : all_(mmap(nullptr, kBytes + 2 * kGap, PROT_NONE, kFlags, -1, 0)) {
    if (all_ == MAP_FAILED || mprotect(begin(), kBytes, PROT_READ | PROT_WRITE) != 0) std::abort();
  }
  ~FreshPages() { munmap(all_, kBytes + 2 * kGap); }
  FreshPages(const FreshPages&) = delete;
  FreshPages& operator=(const FreshPages&) = delete;

  char* begin() const { return static_cast<char*>(all_) + kGap; }
  void touch() const {
    for (std::size_t at = 0; at < kBytes; at += kGap) begin()[at] = 'x';
  }

 private:
  static constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS;
  static constexpr std::size_t kGap = 4096;
  void* all_;
};

// Every worker touches memory of its own (`fresh0`, ...) before the look. `more` prints further
// ranges.
template <std::invocable More>
void look(const std::string& label, atl::Runtime& runtime, More&& more) {
  const std::vector<FreshPages> fresh(static_cast<std::size_t>(runtime.workers()));
  std::vector<long> threads(fresh.size());
  runtime.run([&] {
    atl::all_do([&](int rank) {
      const auto at = static_cast<std::size_t>(rank);
      threads[at] = syscall(SYS_gettid);
      fresh[at].touch();
    });
  });
  std::cout << "look " << label << '\n';
  for (std::size_t rank = 0; rank < fresh.size(); ++rank) {
    std::cout << "rank " << rank << ' ' << threads[rank] << '\n';
    print_range("fresh" + std::to_string(rank), fresh[rank].begin(), FreshPages::kBytes);
  }
  more();
  print_tasks();
  print_maps();
}

// At times alone.
inline void look(const std::string& label) {
  std::cout << "look " << label << '\n';
  print_tasks();
  print_maps();
}

}  // namespace guest
