#include "page_cache.hpp"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <random>
#include <span>
#include <system_error>

#include "descriptor.hpp"
#include "pages.hpp"

namespace atl::inspect {

namespace {

constexpr std::uint64_t kPiecePages = 64;
constexpr std::uint64_t kMostPieces = 2'048;
// cachestat takes about 10 ns for a cached page, so this many (64 GiB) take 0.2 s at most.
constexpr double kMostCounted = 1 << 24;
constexpr long kCachestat = 451;  // the same number on all architectures

std::uint64_t page_bytes() { return static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)); }

void want_regular(const struct stat& status, const std::string& path) {
  if (S_ISDIR(status.st_mode)) fail(EISDIR, path);
  if (!S_ISREG(status.st_mode)) fail(EINVAL, path + " is not a regular file");
}

bool has_fowner() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> data{};
  if (syscall(SYS_capget, &header, data.data()) != 0) return false;
  return (data[0].effective & (1u << CAP_FOWNER)) != 0;
}

// The kernel's own rule (mm/mincore.c, can_do_mincore).
bool mincore_is_true(const struct stat& status, int file) {
  if (status.st_uid == geteuid() || has_fowner()) return true;
  const std::string self = "/proc/self/fd/" + std::to_string(file);
  return faccessat(AT_FDCWD, self.c_str(), W_OK, AT_EACCESS) == 0;
}

std::optional<std::uint64_t> counted(int file) {
  struct {
    std::uint64_t offset, length;
  } range{0, 0};  // the whole file
  struct {
    std::uint64_t cached, dirty, writeback, evicted, recently_evicted;
  } found{};
  if (syscall(kCachestat, file, &range, &found, 0) != 0) return std::nullopt;
  return found.cached;
}

// A piece of the file in our address space.
class Piece {
 public:
  Piece(int file, std::uint64_t first_page, std::uint64_t pages)
      : bytes_(pages * page_bytes()), resident_(pages) {
    start_ = mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, file,
                  static_cast<off_t>(first_page * page_bytes()));
    if (start_ == MAP_FAILED) fail(errno, "mmap");
    // A touch must read nothing ahead, and must not make the page look recently used.
    madvise(start_, bytes_, MADV_RANDOM);
    if (mincore(start_, bytes_, resident_.data()) != 0) {
      const int number = errno;
      munmap(start_, bytes_);
      fail(number, "mincore");
    }
  }
  Piece(const Piece&) = delete;
  Piece& operator=(const Piece&) = delete;
  ~Piece() { munmap(start_, bytes_); }

  bool resident(std::uint64_t page) const { return (resident_[page] & 1) != 0; }

  std::uint64_t count() const {
    return static_cast<std::uint64_t>(
        std::count_if(resident_.begin(), resident_.end(), [](auto page) { return page & 1; }));
  }

  std::uint64_t address(std::uint64_t page) const {
    return reinterpret_cast<std::uintptr_t>(start_) + page * page_bytes();
  }

 private:
  void* start_;
  std::uint64_t bytes_;
  std::vector<unsigned char> resident_;
};

// The kernel reads for us: if the file was truncated it returns EFAULT, and we would get SIGBUS.
void touch(std::span<const std::uint64_t> addresses) {
  for (const std::uint64_t address : addresses) {
    char byte = 0;
    const iovec here{&byte, 1};
    const iovec there{reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)), 1};
    if (process_vm_readv(getpid(), &here, 1, &there, 1, 0) < 0 && errno != EFAULT) {
      fail(errno, "process_vm_readv");
    }
  }
}

class Pieces {
 public:
  Pieces(int file, std::uint64_t pages)
      : file_(file),
        pages_(pages),
        whole_((pages + kPiecePages - 1) / kPiecePages),
        count_(std::min(whole_, kMostPieces)) {}

  std::uint64_t count() const { return count_; }
  std::uint64_t first_page(std::uint64_t piece) const {
    return whole_ * piece / count_ * kPiecePages;
  }
  std::uint64_t length(std::uint64_t piece) const {
    return std::min(kPiecePages, pages_ - first_page(piece));
  }
  bool all() const { return count_ == whole_; }
  Piece map(std::uint64_t piece) const { return {file_, first_page(piece), length(piece)}; }

 private:
  int file_;
  std::uint64_t pages_;
  std::uint64_t whole_;
  std::uint64_t count_;
};

// Ranks of the pages to touch among the `resident` ones, ascending. Random within each part,
// because a fixed step would meet only one node of an interleaved file.
std::vector<std::uint64_t> choose(std::uint64_t resident, std::uint64_t most_pages) {
  const std::uint64_t parts = std::min(resident, most_pages);
  std::vector<std::uint64_t> ranks(parts);
  std::mt19937_64 random(1);  // NOLINT: a fixed seed gives the same pages each time
  for (std::uint64_t part = 0; part < parts; ++part) {
    const std::uint64_t first = resident * part / parts;
    ranks[part] = first + random() % (resident * (part + 1) / parts - first);
  }
  return ranks;
}

std::vector<std::int32_t> nodes_of(const Pieces& pieces,
                                   const std::vector<std::uint64_t>& resident_by_piece,
                                   const std::vector<std::uint64_t>& ranks) {
  std::vector<std::int32_t> found;
  found.reserve(ranks.size());
  std::uint64_t before = 0;  // resident pages in earlier pieces
  auto rank = ranks.begin();
  for (std::uint64_t number = 0; number < pieces.count() && rank != ranks.end(); ++number) {
    const std::uint64_t after = before + resident_by_piece[number];
    if (*rank < after) {
      const Piece piece = pieces.map(number);  // calls mincore again, just before the touch
      std::vector<std::uint64_t> chosen;
      std::uint64_t seen = before;
      for (std::uint64_t page = 0; page < pieces.length(number); ++page) {
        if (!piece.resident(page)) continue;
        if (rank != ranks.end() && *rank == seen) {
          chosen.push_back(piece.address(page));
          ++rank;
        }
        ++seen;
      }
      while (rank != ranks.end() && *rank < after) ++rank;  // fewer are resident than before
      touch(chosen);
      std::vector<std::int32_t> nodes(chosen.size());
      page_nodes(getpid(), chosen, nodes);
      std::copy_if(nodes.begin(), nodes.end(), std::back_inserter(found),
                   [](std::int32_t node) { return node >= 0; });
    }
    before = after;
  }
  return found;
}

}  // namespace

FilePages cached_nodes(const std::string& path, std::uint64_t most_pages) {
  // Opening a pipe would block and opening a device may act, so check before and after.
  struct stat status{};
  if (stat(path.c_str(), &status) != 0) fail(errno, path);
  want_regular(status, path);
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file || fstat(file.get(), &status) != 0) fail(errno, path);
  want_regular(status, path);
  struct statfs system{};
  if (fstatfs(file.get(), &system) != 0) fail(errno, path);
  if (static_cast<std::uint64_t>(system.f_type) == HUGETLBFS_MAGIC) {
    fail(EINVAL, path + " is on hugetlbfs, which has no page cache");
  }

  FilePages found;
  found.size_bytes = static_cast<std::uint64_t>(status.st_size);
  if (found.size_bytes == 0) return found;
  if (!mincore_is_true(status, file.get())) fail(EPERM, path);

  const std::uint64_t pages = (found.size_bytes + page_bytes() - 1) / page_bytes();
  const Pieces pieces(file.get(), pages);
  std::vector<std::uint64_t> resident(pieces.count());
  std::uint64_t total = 0;
  std::uint64_t looked_at = 0;
  for (std::uint64_t number = 0; number < pieces.count(); ++number) {
    resident[number] = pieces.map(number).count();
    total += resident[number];
    looked_at += pieces.length(number);
  }
  found.cached_pages = total;
  if (!pieces.all()) {
    // In floating point, because the product of two page counts may overflow.
    const double estimate =
        static_cast<double>(total) * static_cast<double>(pages) / static_cast<double>(looked_at);
    const auto exact = estimate <= kMostCounted ? counted(file.get()) : std::nullopt;
    found.cached_pages = exact.value_or(static_cast<std::uint64_t>(estimate));
  }
  found.nodes = nodes_of(pieces, resident, choose(total, most_pages));
  return found;
}

}  // namespace atl::inspect
