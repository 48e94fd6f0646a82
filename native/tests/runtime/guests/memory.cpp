// Placed memory on a real kernel with four nodes; tests/vm/test_runtime_memory.py runs and judges
// it.
//
//   runtime_memory_guest CASE [ARG...]
//
// Prints `range LABEL BEGIN END` (hexadecimal) for what was made and touched, all by the main
// thread, then `maps` and the kernel's own /proc/self/numa_maps as they are at that moment; or
// `fault TEXT`. What the arrays report is printed as `said ...`.

#include "atoll/runtime/memory.hpp"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <memory_resource>
#include <string>
#include <thread>
#include <vector>

namespace {

using atl::Array;
using atl::NodeMap;
using atl::Pages;

constexpr std::size_t kMib = std::size_t{1} << 20;
// No two neighbours on one node, so that the kernel shows each part as a mapping of its own.
const NodeMap kBefore{{0, 1, 2, 3}, {3, 1, 0, 2, 1, 3}};
const NodeMap kAfter{{0, 1, 2, 3}, {2, 1, 2, 0, 2, 3}};

void range(const std::string& label, const void* begin, std::size_t bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  std::cout << "range " << label << std::hex << ' ' << address << ' ' << address + bytes << std::dec
            << '\n';
}

void maps() {
  std::ifstream kernels("/proc/self/numa_maps");
  std::cout << "maps\n" << kernels.rdbuf() << "end\n";
}

void fill(Array<char>& array) { std::fill(array.begin(), array.end(), 'x'); }

void show_parts(const Array<char>& array) {
  for (int rank = 0; rank < array.parts(); ++rank) {
    range("rank" + std::to_string(rank), array.part(rank).data(), array.part(rank).size());
  }
  maps();
}

void said(const atl::Rehomed& done) {
  std::cout << "said moved " << done.moved_bytes << " already " << done.already_bytes << " absent "
            << done.absent_bytes << " failed " << done.failed_bytes << ' ' << done.why << '\n';
}

void local(Pages pages, int node, std::size_t mib) {
  auto array = Array<char>::local(mib * kMib, node, pages);
  fill(array);
  const auto found = array.pages_found();
  range("local", array.data(), array.size());
  std::cout << "said why " << atl::why_unplaced() << '\n';
  std::cout << "said huge " << found.huge_bytes << " absent " << found.absent_bytes;
  for (const auto& [on, bytes] : found.bytes_by_node) std::cout << " N" << on << ' ' << bytes;
  std::cout << '\n';
  maps();
}

void here() {
  auto array = Array<char>::local(kMib);
  fill(array);
  range("here", array.data(), array.size());
  maps();
}

void interleaved() {
  auto array = Array<char>::interleaved(4 * kMib, kBefore);
  auto of_two = Array<char>::interleaved(4 * kMib, NodeMap{{1, 3}, {}});
  fill(array);
  fill(of_two);
  range("all", array.data(), array.size());
  range("two", of_two.data(), of_two.size());
  maps();
}

void rehomed(Pages pages) {
  const std::size_t unit = pages == Pages::normal ? kMib : 4 * kMib;
  auto array = Array<char>::partitioned(6 * unit + 12'345, kBefore, pages);
  // The last part is touched only after the move.
  const std::size_t late = array.part(5).size();
  std::fill(array.begin(), array.end() - late, 'x');
  show_parts(array);
  std::atomic<bool> moved{false};
  std::atomic<long> rounds{0};
  std::atomic<bool> right{true};
  std::thread reader([&] {
    const auto part = array.part(0);
    do {
      if (std::count(part.begin(), part.end(), 'x') != std::ssize(part)) right = false;
      ++rounds;
    } while (!moved);
  });
  while (rounds == 0) std::this_thread::yield();
  const auto done = atl::rehome_all(kAfter);
  moved = true;
  reader.join();
  std::cout << "said reader " << (right ? "right" : "wrong") << '\n';
  said(done);
  const auto last = array.part(5);
  std::fill(last.begin(), last.end(), 'x');
  show_parts(array);
  said(array.rehome(kAfter.node_of_rank));
}

void replicated() {
  atl::Replicated<char> table(kMib, kBefore);
  table.update([](std::span<char> copy) { std::fill(copy.begin(), copy.end(), 'x'); });
  for (const int node : kBefore.nodes) {
    range("copy" + std::to_string(node), table.on(node).data(), table.on(node).size());
  }
  range("near", table.local().data(), table.local().size());
  maps();
}

void resources() {
  for (const int node : {3, 1}) {
    auto& memory = atl::local_memory(node);
    // Kept until the process ends, as the maps are read at the end.
    auto* const large = new std::pmr::vector<char>(3 * kMib, 'x', &memory);
    range("large" + std::to_string(node), large->data(), large->size());
    auto* const small = new std::pmr::map<int, std::pmr::string>(&memory);
    for (int i = 0; i < 2'000; ++i) {
      (*small)[i] = std::string(200, 'x');
      if (i % 500 == 0) range("small" + std::to_string(node), (*small)[i].data(), 200);
    }
  }
  maps();
}

// What Docker's default seccomp profile does to a container without CAP_SYS_NICE.
void forbid_mbind() {
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mbind, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{std::size(rules), rules};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

void forbidden() {
  forbid_mbind();
  std::cout << "said why " << atl::why_unplaced() << '\n';
  auto array = Array<char>::partitioned(kMib, kBefore);
  fill(array);
  show_parts(array);
  said(array.rehome(kAfter.node_of_rank));
}

}  // namespace

int main(int count, char** words) {
  const std::vector<std::string> arguments(words + 1, words + count);
  const auto number = [&](std::size_t index) { return std::stoi(arguments.at(index)); };
  const std::map<std::string, std::function<void()>> cases{
      {"local", [&] { local(Pages::normal, number(1), static_cast<std::size_t>(number(2))); }},
      {"here", here},
      {"transparent", [&] { local(Pages::transparent, number(1), 8); }},
      {"huge2m", [&] { local(Pages::huge2m, number(1), 4); }},
      {"interleaved", interleaved},
      {"rehomed", [] { rehomed(Pages::normal); }},
      {"rehomed-transparent", [] { rehomed(Pages::transparent); }},
      {"replicated", replicated},
      {"resources", resources},
      {"forbidden", forbidden},
  };
  try {
    cases.at(arguments.at(0))();
  } catch (const atl::RuntimeFault& fault) {
    std::cout << "fault " << fault.what() << '\n';
  }
}
