// What `perf/inspect.py` inspects: many threads, much address space, and one thread that faults.
//
//   inspect_target THREADS MAPPED_MIB RESIDENT_MIB
//
// All resident memory is in small pages (THP is off). It says "ready", then on stdin:
//   count   prints NODE:BYTES for the large mapping, asked of move_pages page by page
//   begin   the faulting thread starts
//   end     it stops, and prints its latencies in microseconds: COUNT P50 P99 MAX
//
// A latency is that of one page fault, and for the first of a mapping, which is made again for each
// 64 of them, also of munmap and mmap, which need mmap_lock for writing. Faults are due every
// 20 us: one that is held up for 40 ms counts 2,000 times, with what each of those that were due
// meanwhile would have waited (Tene, "How NOT to Measure Latency", 2013). A fault during which
// the scheduler took the CPU away is not counted: nobody held that one up.

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kPage = 4096;
constexpr std::size_t kMib = 1 << 20;
constexpr std::size_t kChunk = 64 * kMib;
constexpr std::size_t kFaultsPerMapping = 64;
constexpr std::chrono::microseconds kPeriod{20};

std::atomic<bool> running{false};

char* map(std::size_t bytes) {
  void* start = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED) {
    std::perror("mmap");
    std::exit(1);
  }
  return static_cast<char*>(start);
}

void touch(char* address) { *const_cast<volatile char*>(address) = 1; }

long times_preempted() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nivcsw;
}

std::vector<double> fault_until_told() {
  std::vector<double> held_up_us;
  held_up_us.reserve(1 << 20);
  char* area = nullptr;
  std::size_t used = kFaultsPerMapping;
  while (running.load(std::memory_order_relaxed)) {
    std::this_thread::sleep_for(kPeriod);
    const long preempted = times_preempted();
    const auto start = Clock::now();
    if (used == kFaultsPerMapping) {
      if (area != nullptr) munmap(area, kFaultsPerMapping * kPage);
      area = map(kFaultsPerMapping * kPage);
      used = 0;
    }
    touch(area + kPage * used++);
    const std::chrono::duration<double, std::micro> took = Clock::now() - start;
    if (times_preempted() != preempted) continue;
    held_up_us.push_back(took.count());
    for (auto late = took - kPeriod; late > kPeriod; late -= kPeriod) {
      held_up_us.push_back(late.count());
    }
  }
  if (area != nullptr) munmap(area, kFaultsPerMapping * kPage);
  return held_up_us;
}

void print(std::vector<double> held_up_us) {
  std::sort(held_up_us.begin(), held_up_us.end());
  const auto at = [&](double part) {
    return held_up_us.empty() ? 0.0
                              : held_up_us[static_cast<std::size_t>(
                                    part * static_cast<double>(held_up_us.size() - 1))];
  };
  std::printf("%zu %.3f %.3f %.3f\n", held_up_us.size(), at(0.5), at(0.99), at(1.0));
}

void count(char* start, std::size_t bytes) {
  std::map<int, std::size_t> found;
  std::vector<void*> pages(16384);
  std::vector<int> nodes(pages.size());
  for (std::size_t offset = 0; offset < bytes; offset += pages.size() * kPage) {
    for (std::size_t i = 0; i < pages.size(); ++i) pages[i] = start + offset + i * kPage;
    if (syscall(SYS_move_pages, 0, pages.size(), pages.data(), nullptr, nodes.data(), 0) != 0) {
      std::perror("move_pages");
      std::exit(1);
    }
    for (const int node : nodes) {
      if (node >= 0) found[node] += kPage;
    }
  }
  for (const auto& [node, size] : found) std::printf("%d:%zu ", node, size);
  std::printf("\n");
}

}  // namespace

int main(int count_of_arguments, char** arguments) {
  if (count_of_arguments != 4) return 2;
  const std::size_t threads = std::strtoul(arguments[1], nullptr, 10);
  const std::size_t mapped = std::strtoul(arguments[2], nullptr, 10) * kMib;
  const std::size_t resident = std::strtoul(arguments[3], nullptr, 10) * kMib;
  prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
  prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
  char* const large = map(mapped);
  // In runs, as allocators leave them: the first part of every 64 MiB.
  const std::size_t in_chunk = resident / (mapped / kChunk);
  for (std::size_t chunk = 0; chunk < mapped; chunk += kChunk) {
    for (std::size_t page = 0; page < in_chunk; page += kPage) touch(large + chunk + page);
  }
  for (std::size_t i = 0; i + 2 < threads; ++i) std::thread([] { pause(); }).detach();
  std::thread worker([&] {
    while (true) {
      running.wait(false);
      print(fault_until_told());
      std::fflush(stdout);
    }
  });
  worker.detach();
  std::printf("ready\n");
  std::fflush(stdout);
  for (std::string word; std::cin >> word;) {
    if (word == "count") {
      count(large, mapped);
      std::fflush(stdout);
    } else {
      running.store(word == "begin");
      running.notify_all();
    }
  }
  _exit(0);
}
