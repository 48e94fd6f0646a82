// Where our own pages and a child's are, against what we did with them.

#include "pages.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace {

const std::uint64_t kPageBytes = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));

class Memory {
 public:
  explicit Memory(std::uint64_t bytes, std::uint64_t alignment = kPageBytes)
      : bytes_(bytes + alignment) {
    start_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const auto first = reinterpret_cast<std::uintptr_t>(start_);
    aligned_ = (first + alignment - 1) / alignment * alignment;
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { munmap(start_, bytes_); }
  std::uint64_t address(std::uint64_t offset) const { return aligned_ + offset; }
  void touch(std::uint64_t offset) const {
    *reinterpret_cast<volatile char*>(aligned_ + offset) = 1;
  }

 private:
  void* start_;
  std::uint64_t bytes_;
  std::uint64_t aligned_;
};

// Whether smaps has huge pages in the mapping that begins there. A kernel whose memory lies in
// pieces may have given none.
bool kernel_gave_huge(std::uint64_t start) {
  std::ostringstream heading;
  heading << std::hex << start << '-';
  std::ifstream smaps("/proc/self/smaps");
  bool here = false;
  for (std::string line; std::getline(smaps, line);) {
    here = here || line.starts_with(heading.str());
    if (here && line.starts_with("AnonHugePages:")) return !line.ends_with(" 0 kB");
  }
  ADD_FAILURE() << "no such mapping: " << heading.str();
  return false;
}

int error_of(pid_t pid) {
  const std::vector<std::uint64_t> addresses{0};
  std::vector<std::int32_t> nodes(1);
  try {
    atl::inspect::page_nodes(pid, addresses, nodes);
  } catch (const std::system_error& fault) {
    return fault.code().value();
  }
  return 0;
}

TEST(PageNodes, TellsTouchedFromUntouchedPages) {
  constexpr std::uint64_t kPages = 40'000;  // several system calls
  const Memory memory(kPages * kPageBytes);
  madvise(reinterpret_cast<void*>(memory.address(0)), kPages * kPageBytes, MADV_NOHUGEPAGE);
  std::vector<std::uint64_t> addresses;
  for (std::uint64_t page = 0; page < kPages; ++page) {
    if (page % 3 == 0) memory.touch(page * kPageBytes);
    addresses.push_back(memory.address(page * kPageBytes + 17));
  }
  // A page that the kernel moves at that moment (compaction) reads as untouched until it has moved
  // it: a touched one has to be seen once, an untouched one never.
  std::vector<bool> seen(kPages);
  std::uint64_t touched_seen = 0;
  for (int looks = 0; looks < 1000 && touched_seen < (kPages + 2) / 3; ++looks) {
    if (looks > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::vector<std::int32_t> nodes(kPages);
    atl::inspect::page_nodes(getpid(), addresses, nodes);
    for (std::uint64_t page = 0; page < kPages; ++page) {
      if (page % 3 != 0 || nodes[page] < 0) {
        ASSERT_EQ(nodes[page], -ENOENT) << page;
      } else if (!seen[page]) {
        seen[page] = true;
        ++touched_seen;
      }
    }
  }
  EXPECT_EQ(touched_seen, (kPages + 2) / 3);
}

TEST(PageNodes, AnAddressWithoutMappingIsAFault) {
  const std::vector<std::uint64_t> addresses{0, ~std::uint64_t{0} - kPageBytes};
  std::vector<std::int32_t> nodes(2);
  atl::inspect::page_nodes(getpid(), addresses, nodes);
  EXPECT_LT(nodes[0], 0);
  EXPECT_LT(nodes[1], 0);
}

TEST(MovePages, LeavesPagesOnTheirNodeAndRefusesOneThatIsNotThere) {
  const Memory memory(3 * kPageBytes);
  memory.touch(0);
  memory.touch(2 * kPageBytes);
  std::vector<std::uint64_t> addresses;
  for (std::uint64_t page = 0; page < 3; ++page)
    addresses.push_back(memory.address(page * kPageBytes));
  std::vector<std::int32_t> before(3), after(3);
  atl::inspect::page_nodes(getpid(), addresses, before);
  ASSERT_GE(before[0], 0);
  atl::inspect::move_pages(getpid(), addresses, before[0], after);
  EXPECT_EQ(after[0], before[0]);
  EXPECT_LT(after[1], 0);
  EXPECT_EQ(after[2], before[0]);
  EXPECT_THROW(atl::inspect::move_pages(getpid(), addresses, 1023, after), std::system_error);
  EXPECT_THROW(atl::inspect::move_pages(0, addresses, 0, after), std::system_error);
}

TEST(PageNodes, RefusesWhatIsNoProcess) {
  EXPECT_EQ(error_of(0), ESRCH);
  EXPECT_EQ(error_of(-1), ESRCH);
  const pid_t child = fork();
  if (child == 0) _exit(0);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_EQ(error_of(child), ESRCH);
}

TEST(PageNodes, AnotherUsersProcessIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to become another user";
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) _exit(setuid(65534) == 0 ? error_of(parent) : 255);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), EPERM);
}

TEST(HugePages, TellsHugeFromSmallPages) {
  std::ifstream switches("/sys/kernel/mm/transparent_hugepage/enabled");
  std::string enabled;
  std::getline(switches, enabled);
  if (enabled.empty() || enabled.find("[never]") != std::string::npos) {
    GTEST_SKIP() << "transparent huge pages are off";
  }
  constexpr std::uint64_t kHuge = 2 << 20;
  const Memory large(kHuge, kHuge);
  const Memory small(kHuge, kHuge);
  madvise(reinterpret_cast<void*>(large.address(0)), kHuge, MADV_HUGEPAGE);
  madvise(reinterpret_cast<void*>(small.address(0)), kHuge, MADV_NOHUGEPAGE);
  large.touch(0);
  small.touch(0);
  const std::vector<std::uint64_t> addresses{large.address(0), large.address(kHuge / 2 + 5),
                                             small.address(0), small.address(kHuge / 2)};
  std::vector<std::uint8_t> huge(addresses.size());
  try {
    atl::inspect::huge_pages(getpid(), addresses, huge);
  } catch (const std::system_error& fault) {
    ASSERT_EQ(fault.code().value(), ENOTTY) << fault.what();
    GTEST_SKIP() << "this kernel has no PAGEMAP_SCAN (Linux 6.7)";
  }
  const std::uint8_t given = kernel_gave_huge(large.address(0)) ? 1 : 0;
  EXPECT_EQ(huge, (std::vector<std::uint8_t>{given, given, 0, 0}));
  // What small pages look like has held by now; of huge ones nothing was shown, so it is no pass.
  if (given == 0) GTEST_SKIP() << "the kernel gave no huge page to tell from small ones";
}

}  // namespace
