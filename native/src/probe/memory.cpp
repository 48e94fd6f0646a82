#include "memory.hpp"

#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "available.hpp"
#include "base/smaps.hpp"
#include "fault.hpp"
#include "pages.hpp"

namespace atl::probe {

namespace {

// Since Linux 5.14. Headers older than Debian 12's lack it.
constexpr int kPopulateWrite = 23;

std::string mib(std::uint64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::size_t round_up(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

void require_available(std::size_t bytes, std::optional<int> node) {
  // A few pages are always safe, and reading the files would take longer than measuring a line.
  constexpr std::size_t kAlwaysThere = 1 << 20;
  if (bytes <= kAlwaysThere && !node) return;
  // The kernel keeps some memory for itself and for page tables.
  const std::uint64_t available = available_bytes(node) / 16 * 15;
  if (bytes <= available) return;
  const std::string where = node ? " on node " + std::to_string(*node) : "";
  throw Fault(Code::kMemory, mib(bytes) + where + " requested, but only " + mib(available) +
                                 " available; use a smaller working set");
}

bool is_only_node(int node) {
  const std::string nodes = first_line("/sys/devices/system/node/has_memory");
  return nodes.empty() || nodes == std::to_string(node);
}

void bind(std::byte* data, std::size_t bytes, int node) {
  constexpr std::size_t kBits = sizeof(unsigned long) * 8;
  const auto index = static_cast<std::size_t>(node);
  std::vector<unsigned long> mask(index / kBits + 1);
  mask[index / kBits] |= 1UL << (index % kBits);
  // The kernel reads one bit fewer than the length says.
  if (syscall(SYS_mbind, data, bytes, MPOL_BIND, mask.data(), mask.size() * kBits + 1, 0) == 0) {
    return;
  }
  // Docker's seccomp profile forbids mbind. With only one node it is not needed.
  if ((errno == EPERM || errno == ENOSYS) && is_only_node(node)) return;
  const std::string why = errno == EPERM ? "in a container this needs CAP_SYS_NICE"
                                         : std::generic_category().message(errno);
  throw Fault(Code::kMemory, "mbind to node " + std::to_string(node) + ": " + why);
}

}  // namespace

std::size_t page_bytes() {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

std::size_t huge_page_bytes() {
  static const std::size_t bytes = [] {
    const std::string line = first_line("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size");
    return static_cast<std::size_t>(std::strtoull(line.c_str(), nullptr, 10));
  }();
  return bytes;
}

Memory::Memory(std::size_t bytes, std::optional<int> node, bool huge) : bytes_(bytes) {
  const std::size_t unit = huge && huge_page_bytes() > 0 ? huge_page_bytes() : page_bytes();
  require_available(bytes, node);
  mapping_bytes_ = round_up(bytes, unit) + unit;
  void* const mapped = mmap(nullptr, mapping_bytes_, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) {
    throw Fault(Code::kMemory, mib(bytes) + ": " + std::generic_category().message(errno));
  }
  mapping_ = static_cast<std::byte*>(mapped);
  const std::size_t over = reinterpret_cast<std::uintptr_t>(mapped) % unit;
  data_ = mapping_ + (over == 0 ? 0 : unit - over);
  // Fails if the kernel has no huge pages; report() shows the result.
  madvise(data_, round_up(bytes, unit), huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  if (!node) return;
  try {
    bind(data_, round_up(bytes, unit), *node);
    if (madvise(data_, round_up(bytes, page_bytes()), kPopulateWrite) != 0) {
      if (errno != EINVAL) {
        throw Fault(Code::kMemory, mib(bytes) + " on node " + std::to_string(*node) + ": " +
                                       std::generic_category().message(errno));
      }
      touch();
    }
  } catch (...) {
    munmap(mapping_, mapping_bytes_);
    throw;
  }
}

Memory::Memory(Memory&& other) noexcept
    : mapping_(std::exchange(other.mapping_, nullptr)),
      mapping_bytes_(std::exchange(other.mapping_bytes_, 0)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

Memory::~Memory() {
  if (mapping_ != nullptr) munmap(mapping_, mapping_bytes_);
}

void Memory::touch(std::size_t offset, std::size_t bytes) const {
  for (std::size_t at = offset; at < offset + bytes; at += page_bytes()) {
    *reinterpret_cast<volatile char*>(data_ + at) = 0;
  }
}

PageReport Memory::report() const {
  constexpr std::size_t kMostPages = 1024;
  const std::size_t pages = round_up(bytes_, page_bytes()) / page_bytes();
  const std::size_t count = std::min(pages, kMostPages);
  std::vector<std::uint64_t> addresses(count);
  for (std::size_t i = 0; i < count; ++i) {
    addresses[i] = reinterpret_cast<std::uintptr_t>(data_) + i * pages / count * page_bytes();
  }
  PageReport report;
  std::vector<std::int32_t> nodes(count);
  try {
    inspect::page_nodes(getpid(), addresses, nodes);
  } catch (const std::system_error&) {
    nodes.assign(count, -1);  // forbidden in some containers: the nodes are unknown
  }
  for (const std::int32_t node : nodes) {
    if (node >= 0) ++report.nodes[node];
  }
  std::vector<std::uint8_t> huge(count);
  try {
    inspect::huge_pages(getpid(), addresses, huge);
    const auto found = static_cast<std::size_t>(std::count(huge.begin(), huge.end(), 1));
    report.huge = found * 10 >= count * 9;
  } catch (const std::system_error&) {
    std::ifstream smaps("/proc/self/smaps");
    const auto begin = reinterpret_cast<std::uintptr_t>(data_);
    report.huge = base::huge_bytes_in(smaps, begin, begin + bytes_) / 9 * 10 >= bytes_;
  }
  return report;
}

}  // namespace atl::probe
