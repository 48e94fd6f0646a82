// A many-threaded program that says where it really sits: the subject of the landing tests.
//
//   subject THREADS PAGES
//
// Every thread (the main thread is the first of them) takes memory of each kind that an engine
// has: a private mapping, a block from malloc, its stack, a part of one mapping that all threads
// share. It touches each page itself and notes the node that it ran on at that moment. Then it
// looks several times at the CPU that it is on, and asks the kernel for its mask
// (sched_getaffinity) and for the node of every page (move_pages(2) without a target).
//
// Promises: one line of JSON on stdout when all threads are done; then all of them stay, for who
// looks from outside, until SIGTERM. It never sets a mask or a memory policy. It dies with its
// parent. Exit 2: wrong usage; 3: the system refused something.
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <barrier>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kStackPages = 8;
// Left out above them: there the frames of earlier calls were, maybe touched on another node.
constexpr std::size_t kUsedStackPages = 8;
// Below glibc's threshold for a mapping of its own (128 KiB), so that it comes from an arena.
constexpr std::size_t kMallocPages = 16;
constexpr std::size_t kLooks = 10;
constexpr int kUncertain = -1;

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "subject: %s: %s\n", what, std::strerror(errno));
  std::_Exit(3);
}

struct Region {
  const char* kind;
  std::vector<void*> pages;
  std::vector<int> touched_on;  // node of the CPU that touched it; kUncertain: moved meanwhile
  std::vector<int> nodes;       // what the kernel says
};

struct Observation {
  pid_t tid = 0;
  std::vector<unsigned> affinity;
  std::vector<unsigned> ran_on;
  std::vector<Region> regions;
};

struct Where {
  unsigned cpu = 0;
  unsigned node = 0;
};

Where here() {
  Where where;
  if (getcpu(&where.cpu, &where.node) != 0) {
    fail("getcpu");
  }
  return where;
}

// Not inlined: its buffer would share the stack with the pages that are touched afterwards.
[[gnu::noinline]] std::vector<unsigned> affinity() {
  constexpr std::size_t kMostCpus = 8192;
  std::array<unsigned long, kMostCpus / (8 * sizeof(unsigned long))> words{};
  if (sched_getaffinity(0, sizeof words, reinterpret_cast<cpu_set_t*>(words.data())) != 0) {
    fail("sched_getaffinity");
  }
  std::vector<unsigned> cpus;
  for (unsigned cpu = 0; cpu < kMostCpus; ++cpu) {
    const std::size_t bits = 8 * sizeof(unsigned long);
    if ((words[cpu / bits] >> (cpu % bits) & 1UL) != 0) {
      cpus.push_back(cpu);
    }
  }
  return cpus;
}

// Touch `count` whole pages from the first page boundary in `memory` on.
Region touch(const char* kind, void* memory, std::size_t count) {
  Region region{kind, {}, {}, {}};
  const auto start = (reinterpret_cast<std::uintptr_t>(memory) + kPage - 1) / kPage * kPage;
  for (std::size_t page = 0; page < count; ++page) {
    auto* const address = reinterpret_cast<volatile char*>(start + page * kPage);
    const unsigned before = here().node;
    *address = 1;
    const unsigned after = here().node;
    region.pages.push_back(const_cast<char*>(address));
    region.touched_on.push_back(before == after ? static_cast<int>(before) : kUncertain);
  }
  return region;
}

void ask_nodes(Region& region) {
  region.nodes.resize(region.pages.size());
  if (syscall(SYS_move_pages, 0, region.pages.size(), region.pages.data(), nullptr,
              region.nodes.data(), 0) != 0) {
    fail("move_pages");
  }
}

void* map(std::size_t pages, int sharing) {
  void* const memory =
      mmap(nullptr, pages * kPage, PROT_READ | PROT_WRITE, sharing | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    fail("mmap");
  }
  return memory;
}

void look_around(Observation& seen) {
  for (std::size_t look = 0; look < kLooks; ++look) {
    seen.ran_on.push_back(here().cpu);
    // Wakes up where the scheduler likes, if the mask lets it choose.
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

// The stack array must outlive the questions about its pages, so all that a thread does is here.
[[gnu::noinline]] void observe(Observation& seen, std::size_t pages, char* shared_part) {
  char stack[(kStackPages + 1 + kUsedStackPages) * kPage];
  seen.tid = static_cast<pid_t>(syscall(SYS_gettid));
  seen.affinity = affinity();
  void* const block = std::malloc((kMallocPages + 1) * kPage);
  if (block == nullptr) {
    fail("malloc");
  }
  seen.regions.push_back(touch("mapping", map(pages, MAP_PRIVATE), pages));
  seen.regions.push_back(touch("malloc", block, kMallocPages));
  seen.regions.push_back(touch("stack", stack, kStackPages));
  seen.regions.push_back(touch("shared", shared_part, pages));
  look_around(seen);
  for (Region& region : seen.regions) {
    ask_nodes(region);
  }
}

template <typename Number>
void append(std::string& text, const char* name, const std::vector<Number>& numbers) {
  text.append("\"").append(name).append("\":[");
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    text.append(i == 0 ? "" : ",").append(std::to_string(numbers[i]));
  }
  text.append("]");
}

std::string to_json(const std::vector<Observation>& all) {
  std::string text = "{\"pid\":" + std::to_string(getpid()) + ",\"threads\":[";
  for (const Observation& seen : all) {
    text.append(&seen == all.data() ? "" : ",");
    text.append("{\"tid\":" + std::to_string(seen.tid) + ",");
    append(text, "affinity", seen.affinity);
    text.append(",");
    append(text, "ran_on", seen.ran_on);
    text.append(",\"regions\":[");
    for (const Region& region : seen.regions) {
      text.append(&region == seen.regions.data() ? "" : ",");
      text.append("{\"kind\":\"").append(region.kind).append("\",");
      append(text, "touched_on", region.touched_on);
      text.append(",");
      append(text, "nodes", region.nodes);
      text.append("}");
    }
    text.append("]}");
  }
  return text.append("]}\n");
}

std::size_t number(const char* text) {
  char* end = nullptr;
  const unsigned long value = std::strtoul(text, &end, 10);
  if (*end != '\0' || value == 0 || value > 1'000'000) {
    std::fputs("usage: subject THREADS PAGES\n", stderr);
    std::_Exit(2);
  }
  return value;
}

}  // namespace

int main(int argc, char** argv) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const std::size_t threads = number(argc == 3 ? argv[1] : "");
  const std::size_t pages = number(argv[2]);
  char* const shared = static_cast<char*>(map(threads * pages, MAP_SHARED));

  std::vector<Observation> seen(threads);
  // Nobody touches before all threads are there, so that they really share the CPUs.
  std::barrier together(static_cast<std::ptrdiff_t>(threads));
  std::barrier<> done(static_cast<std::ptrdiff_t>(threads));
  const auto work = [&](std::size_t index) {
    together.arrive_and_wait();
    observe(seen[index], pages, shared + index * pages * kPage);
    done.arrive_and_wait();
  };
  for (std::size_t index = 1; index < threads; ++index) {
    std::thread([&work, index] {
      work(index);
      for (;;) {
        pause();
      }
    }).detach();
  }
  work(0);
  const std::string text = to_json(seen);
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    fail("standard output");
  }
  for (;;) {
    pause();
  }
}
