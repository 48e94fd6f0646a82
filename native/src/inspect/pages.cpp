#include "pages.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <system_error>
#include <vector>

#include "descriptor.hpp"

namespace atl::inspect {

namespace {

// One system call cannot be interrupted; 16 Ki pages take about a millisecond.
constexpr std::size_t kBatch = 16'384;
constexpr int kOwnPagesOnly = 2;  // MPOL_MF_MOVE of linux/mempolicy.h

// struct pm_scan_arg of linux/fs.h, which Debian 12's headers do not have yet.
struct ScanArgument {
  std::uint64_t size;
  std::uint64_t flags;
  std::uint64_t start;
  std::uint64_t end;
  std::uint64_t walk_end;
  std::uint64_t regions;
  std::uint64_t most_regions;
  std::uint64_t most_pages;
  std::uint64_t inverted;
  std::uint64_t all_of;
  std::uint64_t any_of;
  std::uint64_t returned;
};
static_assert(sizeof(ScanArgument) == 96);

struct Region {
  std::uint64_t start;
  std::uint64_t end;
  std::uint64_t categories;
};

constexpr unsigned long kScan = _IOWR('f', 16, ScanArgument);
constexpr std::uint64_t kPresent = 1 << 3;
constexpr std::uint64_t kHuge = 1 << 6;

}  // namespace

void page_nodes(pid_t pid, std::span<const std::uint64_t> addresses,
                std::span<std::int32_t> nodes) {
  // 0 would mean the calling process.
  if (pid <= 0) fail(ESRCH, "move_pages");
  for (std::size_t first = 0; first < addresses.size(); first += kBatch) {
    const std::size_t count = std::min(kBatch, addresses.size() - first);
    if (syscall(SYS_move_pages, pid, count, addresses.data() + first, nullptr, nodes.data() + first,
                0) < 0) {
      fail(errno, "move_pages");
    }
  }
}

void move_pages(pid_t pid, std::span<const std::uint64_t> addresses, int node,
                std::span<std::int32_t> status) {
  if (pid <= 0) fail(ESRCH, "move_pages");
  const std::vector<int> targets(std::min(kBatch, addresses.size()), node);
  // The kernel writes nothing for pages that it did not reach.
  std::ranges::fill(status, -EBUSY);
  for (std::size_t first = 0; first < addresses.size(); first += kBatch) {
    const std::size_t count = std::min(kBatch, addresses.size() - first);
    // A positive result counts pages that did not move; `status` has them.
    if (syscall(SYS_move_pages, pid, count, addresses.data() + first, targets.data(),
                status.data() + first, kOwnPagesOnly) < 0 &&
        errno != ENOENT) {
      fail(errno, "move_pages");
    }
  }
}

void huge_pages(pid_t pid, std::span<const std::uint64_t> addresses, std::span<std::uint8_t> huge) {
  const std::string path = "/proc/" + std::to_string(pid) + "/pagemap";
  const Descriptor pagemap(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!pagemap) fail(errno, path);
  const auto page_bytes = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    const std::uint64_t start = addresses[i] & ~(page_bytes - 1);
    Region region{};
    ScanArgument argument{};
    argument.size = sizeof(argument);
    argument.start = start;
    argument.end = start + page_bytes;
    argument.regions = reinterpret_cast<std::uintptr_t>(&region);
    argument.most_regions = 1;
    argument.all_of = kPresent | kHuge;
    argument.returned = kPresent | kHuge;
    const int found = ioctl(pagemap.get(), kScan, &argument);
    if (found < 0) fail(errno, path);
    huge[i] = found > 0 ? 1 : 0;
  }
}

}  // namespace atl::inspect
