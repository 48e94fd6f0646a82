#include "page_policy.hpp"

#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <system_error>

namespace atl::runtime {

namespace {

// Since Linux 5.14; older headers lack it.
constexpr int kPopulateWrite = 23;
// MAP_HUGE_SHIFT of linux/mman.h: where log2 of the page's size goes in mmap's flags.
constexpr int kHugeShift = 26;

std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

int mode_of(Placement placement) {
  switch (placement) {
    case Placement::kBound: return MPOL_BIND;
    case Placement::kInterleaved: return MPOL_INTERLEAVE;
    case Placement::kPreferred: break;
  }
  return MPOL_PREFERRED;
}

class Kernel final : public PagePolicy {
 public:
  int place(std::byte* at, std::size_t bytes, Placement placement,
            std::span<const int> nodes) override {
    constexpr std::size_t kBits = sizeof(unsigned long) * 8;
    std::vector<unsigned long> mask;
    for (const int node : nodes) {
      if (node < 0) return EINVAL;
      const auto index = static_cast<std::size_t>(node);
      if (mask.size() <= index / kBits) mask.resize(index / kBits + 1);
      mask[index / kBits] |= 1UL << (index % kBits);
    }
    // The kernel reads one bit less than the given number.
    const std::size_t bits = mask.size() * kBits + 1;
    return syscall(SYS_mbind, at, bytes, mode_of(placement), mask.data(), bits, 0) == 0 ? 0 : errno;
  }

  int look(std::span<void* const> pages, std::span<int> nodes) override {
    return move_pages(pages, nullptr, nodes);
  }

  int move(std::span<void* const> pages, int node, std::span<int> status) override {
    const std::vector<int> targets(pages.size(), node);
    return move_pages(pages, targets.data(), status);
  }

  int map_pool(std::size_t bytes, std::size_t page_bytes, std::byte*& at) override {
    const int size = std::countr_zero(page_bytes) << kHugeShift;
    void* const mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | size, -1, 0);
    if (mapped == MAP_FAILED) return errno;
    at = static_cast<std::byte*>(mapped);
    return 0;
  }

  int want_huge(std::byte* at, std::size_t bytes) override {
    // With the switch at never, madvise succeeds without effect.
    constexpr const char* kSwitch = "/sys/kernel/mm/transparent_hugepage/enabled";
    if (first_line(kSwitch).find("[never]") != std::string::npos) return ENOTSUP;
    return madvise(at, bytes, MADV_HUGEPAGE) == 0 ? 0 : errno;
  }

  int populate(std::byte* at, std::size_t bytes) override {
    return madvise(at, bytes, kPopulateWrite) == 0 ? 0 : errno;
  }

  int node_here() override {
    unsigned node = 0;
    return getcpu(nullptr, &node) == 0 ? static_cast<int>(node) : 0;  // vDSO: no system call
  }

  bool one_node() override {
    // A list like "0-1,3"; the file is missing where the kernel knows no nodes.
    const std::string nodes = first_line("/sys/devices/system/node/has_memory");
    return nodes.find_first_of(",-") == std::string::npos;
  }

 private:
  static int move_pages(std::span<void* const> pages, const int* targets, std::span<int> status) {
    const long left = syscall(SYS_move_pages, 0, pages.size(), pages.data(), targets, status.data(),
                              MPOL_MF_MOVE);
    // Above 0: the number of pages not moved. ENOENT: none had to move (before Linux 4.17).
    return left >= 0 || errno == ENOENT ? 0 : errno;
  }
};

}  // namespace

PagePolicy& kernel_page_policy() {
  // Never destroyed: arrays of static lifetime may outlive everything else.
  static auto* const kernel = new Kernel;
  return *kernel;
}

std::vector<int> nodes_with_memory() {
  constexpr std::size_t kBits = sizeof(unsigned long) * 8;
  std::array<unsigned long, 1024 / kBits> mask{};  // the kernel's most nodes
  std::vector<int> nodes;
  if (syscall(SYS_get_mempolicy, nullptr, mask.data(), 1024UL, nullptr, MPOL_F_MEMS_ALLOWED) == 0) {
    for (std::size_t node = 0; node < 1024; ++node) {
      if ((mask[node / kBits] >> (node % kBits) & 1) != 0) nodes.push_back(static_cast<int>(node));
    }
  }
  if (nodes.empty()) nodes.push_back(0);
  return nodes;
}

std::size_t huge_page_bytes() {
  static const std::size_t bytes = [] {
    const std::string line = first_line("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size");
    const auto said = static_cast<std::size_t>(std::strtoull(line.c_str(), nullptr, 10));
    return std::has_single_bit(said) ? std::max(said, page_bytes()) : std::size_t{2} << 20;
  }();
  return bytes;
}

std::string why_unplaced(PagePolicy& policy) {
  if (policy.one_node()) return {};
  void* const page =
      mmap(nullptr, page_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return "cannot map a page for a test of mbind: " + in_words(errno);
  const std::vector<int> here{policy.node_here()};
  const int error =
      policy.place(static_cast<std::byte*>(page), page_bytes(), Placement::kPreferred, here);
  munmap(page, page_bytes());
  if (error == EPERM) {
    return "mbind is forbidden here, so pages lie on the node of the thread that touches them "
           "first; give the container CAP_SYS_NICE, or confine it to one node by cpuset.mems";
  }
  if (error == ENOSYS) {
    return "this kernel has no mbind (CONFIG_NUMA), so pages lie on the node of the thread that "
           "touches them first";
  }
  return {};
}

std::string nodes_in_words(std::span<const int> nodes) {
  std::string words = nodes.size() == 1 ? "node " : "nodes ";
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    words += (i == 0 ? "" : ", ") + std::to_string(nodes[i]);
  }
  return words;
}

std::string in_words(int error) { return std::generic_category().message(error); }

}  // namespace atl::runtime
