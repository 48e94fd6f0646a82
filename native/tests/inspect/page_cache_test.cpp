// The page cache of files that the test writes, drops and reads.

#include "page_cache.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace {

namespace fs = std::filesystem;
using atl::inspect::cached_nodes;
using atl::inspect::FilePages;

const std::uint64_t kPage = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));

class PageCache : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::current_path() / "page-cache-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  // A file of `pages` pages, written and not yet on disk: the kernel may drop others at any time.
  std::string file(std::uint64_t pages) {
    const std::string path = folder_ + "/file";
    write_pages(path, pages);
    return path;
  }

  static void write_pages(const std::string& path, std::uint64_t pages) {
    const int descriptor = open(path.c_str(), O_CREAT | O_RDWR, 0644);
    const std::vector<char> page(kPage, 'x');
    for (std::uint64_t i = 0; i < pages; ++i)
      EXPECT_EQ(write(descriptor, page.data(), kPage), kPage);
    close(descriptor);
  }

  std::string sparse(std::uint64_t bytes) {
    const std::string path = folder_ + "/sparse";
    close(open(path.c_str(), O_CREAT | O_RDWR, 0644));
    EXPECT_EQ(truncate(path.c_str(), static_cast<off_t>(bytes)), 0);
    return path;
  }

  static void drop(const std::string& path) {
    const int descriptor = open(path.c_str(), O_RDONLY);
    EXPECT_EQ(fsync(descriptor), 0);
    EXPECT_EQ(posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED), 0);
    close(descriptor);
  }

  static void read_page(const std::string& path, std::uint64_t page) {
    const int descriptor = open(path.c_str(), O_RDONLY);
    posix_fadvise(descriptor, 0, 0, POSIX_FADV_RANDOM);  // no read-ahead
    char byte = 0;
    EXPECT_EQ(pread(descriptor, &byte, 1, static_cast<off_t>(page * kPage)), 1);
    close(descriptor);
  }

  // Looks again while some are missing: a page that the kernel moves at that moment (compaction) is
  // not seen until it has moved it.
  static FilePages all_seen(const std::string& path, std::size_t most, std::size_t wanted) {
    FilePages found = cached_nodes(path, most);
    for (int looks = 0; looks < 1000 && found.nodes.size() < wanted; ++looks) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      found = cached_nodes(path, most);
    }
    return found;
  }

  static int error_of(const std::string& path) {
    try {
      cached_nodes(path, 10);
    } catch (const std::system_error& fault) {
      return fault.code().value();
    }
    return 0;
  }

  std::string folder_;
};

TEST_F(PageCache, AFileJustWrittenIsThere) {
  const FilePages found = all_seen(file(1000), 5000, 1000);
  EXPECT_EQ(found.size_bytes, 1000 * kPage);
  EXPECT_EQ(found.cached_pages, 1000u);
  ASSERT_EQ(found.nodes.size(), 1000u);
  for (const std::int32_t node : found.nodes) EXPECT_GE(node, 0);
}

TEST_F(PageCache, AsManyAreLookedAtAsAskedFor) {
  const std::string path = file(1000);
  EXPECT_EQ(all_seen(path, 37, 37).nodes.size(), 37u);
  EXPECT_EQ(cached_nodes(path, 0).nodes.size(), 0u);
}

TEST_F(PageCache, NothingIsReadIn) {
  const std::string path = file(1000);
  drop(path);
  // Again while pages are left: one that the kernel moves at that moment (compaction) stays.
  for (int times = 0; times < 1000 && cached_nodes(path, 0).cached_pages != 0; ++times) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    drop(path);
  }
  if (cached_nodes(path, 0).cached_pages != 0) GTEST_SKIP() << "this file system keeps its cache";
  for (const std::uint64_t page : {3, 500, 501, 999}) read_page(path, page);
  const std::uint64_t there = cached_nodes(path, 0).cached_pages;
  ASSERT_LT(there, 1000u);
  // Fewer, if the kernel drops one meanwhile.
  for (int i = 0; i < 3; ++i) {
    const FilePages found = cached_nodes(path, 1000);
    EXPECT_LE(found.cached_pages, there);
    EXPECT_LE(found.nodes.size(), there);
  }
}

TEST_F(PageCache, APartOfALargeFile) {
  // 4 GiB, so that only pieces of it are looked at.
  const std::string path = sparse(std::uint64_t{4} << 30);
  EXPECT_EQ(cached_nodes(path, 100).cached_pages, 0u);
  write_pages(path, 8192);
  const FilePages found = all_seen(path, 100, 100);
  // Counted where the kernel has cachestat, else estimated from every eighth piece.
  EXPECT_GE(found.cached_pages, 8192u);
  EXPECT_LE(found.cached_pages, 8192u + 8192u);
  EXPECT_EQ(found.nodes.size(), 100u);
}

TEST_F(PageCache, ATerabyteCostsNothing) {
  const FilePages found = cached_nodes(sparse(std::uint64_t{1} << 40), 100);
  EXPECT_EQ(found.size_bytes, std::uint64_t{1} << 40);
  EXPECT_EQ(found.cached_pages, 0u);
  EXPECT_TRUE(found.nodes.empty());
}

TEST_F(PageCache, AnEmptyFileAndALastPageThatIsCutOff) {
  EXPECT_EQ(cached_nodes(sparse(0), 10).cached_pages, 0u);
  const std::string path = file(3);
  ASSERT_EQ(truncate(path.c_str(), static_cast<off_t>(2 * kPage + 1)), 0);
  EXPECT_EQ(cached_nodes(path, 10).cached_pages, 3u);
}

TEST_F(PageCache, OnlyRegularFiles) {
  EXPECT_EQ(error_of(folder_), EISDIR);
  const std::string pipe = folder_ + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(error_of(pipe), EINVAL);
  EXPECT_EQ(error_of("/dev/null"), EINVAL);
  EXPECT_EQ(error_of(folder_ + "/none"), ENOENT);
}

TEST_F(PageCache, OneWhoMayOnlyReadIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to become another user";
  const std::string path = file(10);
  const int descriptor = open(path.c_str(), O_RDONLY);
  // By its descriptor: the folders above may be closed to others.
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  const pid_t child = fork();
  if (child == 0) {
    if (setuid(65534) != 0) _exit(255);
    _exit(error_of(link));
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  close(descriptor);
  EXPECT_EQ(WEXITSTATUS(status), EPERM);
}

}  // namespace
