#include "binding.hpp"

#include <numa.h>
#include <numaif.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "fault.hpp"

namespace {

// libnuma's last error. Plain memory, because libnuma's constructor may run before ours.
char g_libnuma_complaint[256];

}  // namespace

// libnuma's versions print to stderr. They are weak symbols, so a program can replace them.
extern "C" __attribute__((visibility("default"))) void numa_error(char*) {}

extern "C" __attribute__((visibility("default"))) void numa_warn(int, char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(g_libnuma_complaint, sizeof g_libnuma_complaint, format, arguments);
  va_end(arguments);
}

namespace atl::exec {
namespace {

struct BitmaskFree {
  void operator()(bitmask* mask) const { numa_bitmask_free(mask); }
};
using Bitmask = std::unique_ptr<bitmask, BitmaskFree>;

constexpr std::size_t kMaxMaskBits = 1U << 15;  // four times the kernel's largest NR_CPUS

CpuSet set_of(const bitmask* mask) {
  const std::size_t words = (mask->size + CpuSet::kWordBits - 1) / CpuSet::kWordBits;
  return CpuSet::from_words({mask->maskp, mask->maskp + words});
}

std::string libnuma_complaint() {
  std::string text = g_libnuma_complaint;
  text.erase(std::remove(text.begin(), text.end(), '\n'), text.end());
  text.erase(text.find_last_not_of(' ') + 1);
  return text.empty() ? "invalid list" : text;
}

CpuSet nodes_of_list(const std::string& flag, const std::string& list) {
  const Bitmask mask(numa_parse_nodestring(list.c_str()));
  if (!mask) {
    throw Fault(flag + " " + list + ": " + libnuma_complaint() +
                "; allowed nodes: " + set_of(numa_all_nodes_ptr).to_string());
  }
  CpuSet nodes = set_of(mask.get());
  if (nodes.empty()) {
    throw Fault(flag + " " + list +
                ": contains no node; allowed nodes: " + set_of(numa_all_nodes_ptr).to_string());
  }
  return nodes;
}

bool kernel_is_older_than(int major, int minor) {
  utsname name{};
  int found_major = 0;
  int found_minor = 0;
  if (uname(&name) != 0 || std::sscanf(name.release, "%d.%d", &found_major, &found_minor) != 2) {
    return false;
  }
  return found_major < major || (found_major == major && found_minor < minor);
}

CpuSet nodes_with_memory() {
  CpuSet nodes;
  for (const std::size_t node : set_of(numa_all_nodes_ptr).members()) {
    if (numa_node_size64(static_cast<int>(node), nullptr) > 0) {
      nodes.insert(node);
    }
  }
  return nodes;
}

[[noreturn]] void fail_policy(const MemoryFlag& flag, int error) {
  const std::string what = flag.flag + (flag.nodes.empty() ? "" : " " + flag.nodes) + ": ";
  if (error == EPERM) {
    throw Fault(what +
                "the kernel forbids set_mempolicy, as containers do without CAP_SYS_NICE; add "
                "that capability (docker run --cap-add SYS_NICE), or leave the flag out and "
                "limit memory by cgroup cpuset.mems (docker run --cpuset-mems)");
  }
  if (error == ENOSYS) {
    throw Fault(what + "this kernel is built without NUMA support; leave the flag out");
  }
  if (error == EINVAL && flag.mode == MemoryMode::kWeightedInterleave &&
      kernel_is_older_than(6, 9)) {
    throw Fault(what + "needs Linux 6.9 or later; use --interleave");
  }
  if (error == EINVAL && flag.mode == MemoryMode::kPreferredMany && kernel_is_older_than(5, 15)) {
    throw Fault(what + "needs Linux 5.15 or later; use --preferred");
  }
  if (error == EINVAL) {
    throw Fault(what + "these nodes have no memory that this process may use; nodes with memory: " +
                nodes_with_memory().to_string());
  }
  throw Fault(what + std::strerror(error));
}

CpuSet cpus_of_nodes(const std::string& list) {
  const CpuSet nodes = nodes_of_list("--cpunodebind", list);
  CpuSet cpus;
  const Bitmask found(numa_allocate_cpumask());
  for (const std::size_t node : nodes.members()) {
    if (numa_node_to_cpus(static_cast<int>(node), found.get()) != 0) {
      throw Fault("--cpunodebind " + list + ": the kernel does not report the CPUs of node " +
                  std::to_string(node));
    }
    cpus |= set_of(found.get());
  }
  if (cpus.empty()) {
    throw Fault("--cpunodebind " + list + ": node " + nodes.to_string() +
                " has memory but no CPUs; choose a node with CPUs");
  }
  return cpus;
}

CpuSet cpus_of_list(const std::string& list) {
  const Bitmask mask(numa_parse_cpustring(list.c_str()));
  if (!mask) {
    throw Fault("--physcpubind " + list + ": " + libnuma_complaint() +
                "; allowed CPUs: " + current_cpus().to_string());
  }
  CpuSet cpus = set_of(mask.get());
  if (cpus.empty()) {
    throw Fault("--physcpubind " + list +
                ": contains no CPU; allowed CPUs: " + current_cpus().to_string());
  }
  return cpus;
}

}  // namespace

CpuSet cpus_of_flag(const CpuFlag& flag) {
  return flag.by_node ? cpus_of_nodes(flag.list) : cpus_of_list(flag.list);
}

CpuSet current_cpus() {
  std::vector<CpuSet::Word> words(kMaxMaskBits / CpuSet::kWordBits);
  if (sched_getaffinity(0, words.size() * sizeof words[0],
                        reinterpret_cast<cpu_set_t*>(words.data())) != 0) {
    throw Fault(std::string("sched_getaffinity: ") + std::strerror(errno));
  }
  return CpuSet::from_words(std::move(words));
}

void bind_cpus(const CpuSet& cpus, bool all_of_them) {
  const std::vector<CpuSet::Word>& words = cpus.words();
  if (sched_setaffinity(0, words.size() * sizeof words[0],
                        reinterpret_cast<const cpu_set_t*>(words.data())) == 0) {
    const CpuSet left = current_cpus();
    CpuSet missing = cpus;
    missing -= left;
    if (all_of_them && !missing.empty()) {
      throw Fault("CPUs " + missing.to_string() +
                  ": offline, or outside the cgroup; available are only " + left.to_string());
    }
    return;
  }
  const int error = errno;
  if (error == EINVAL) {
    throw Fault("CPUs " + cpus.to_string() +
                ": offline, or outside the cgroup; allowed CPUs: " + current_cpus().to_string());
  }
  if (error == EPERM) {
    throw Fault(
        "the kernel forbids sched_setaffinity, as some containers do; leave out CPU flags "
        "and places, or limit CPUs by cgroup cpuset.cpus (docker run --cpuset-cpus)");
  }
  throw Fault("CPUs " + cpus.to_string() + ": " + std::strerror(error));
}

void set_memory_policy(const MemoryFlag& flag) {
  CpuSet nodes;
  if (flag.mode != MemoryMode::kLocal) {
    nodes = nodes_of_list(flag.flag, flag.nodes);
  }
  if (flag.mode == MemoryMode::kPreferred && nodes.size() != 1) {
    throw Fault("--preferred " + flag.nodes + ": takes one node; use --preferred-many for several");
  }
  const std::vector<CpuSet::Word>& words = nodes.words();
  // The kernel reads one bit fewer than the length says (get_nodes in mm/mempolicy.c).
  const unsigned long bits = words.empty() ? 0 : words.size() * CpuSet::kWordBits + 1;
  if (set_mempolicy(static_cast<int>(flag.mode), words.empty() ? nullptr : words.data(), bits) !=
      0) {
    fail_policy(flag, errno);
  }
}

std::string describe_memory_policy() {
  int mode = 0;
  std::vector<CpuSet::Word> words(kMaxMaskBits / CpuSet::kWordBits);
  if (get_mempolicy(&mode, words.data(), kMaxMaskBits, nullptr, 0) != 0) {
    return std::string("unknown (get_mempolicy: ") + std::strerror(errno) + ")";
  }
  constexpr std::string_view kNames[] = {
      "default (first touch)", "preferred",          "bind", "interleave", "local",
      "preferred-many",        "weighted-interleave"};
  constexpr unsigned kModeBits = 0xff;  // the other bits are flags (static, relative nodes ...)
  const unsigned index = static_cast<unsigned>(mode) & kModeBits;
  std::string text =
      index < std::size(kNames) ? std::string(kNames[index]) : "mode " + std::to_string(index);
  const CpuSet nodes = CpuSet::from_words(std::move(words));
  return nodes.empty() ? text : text + ": " + nodes.to_string();
}

void disable_huge_pages() {
  // Survives execve and fork (prctl(2)), so it applies to the command and its children.
  if (prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) != 0) {
    throw Fault(std::string("--no-thp: ") + std::strerror(errno));
  }
}

bool huge_pages_disabled() { return prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) > 0; }

}  // namespace atl::exec
