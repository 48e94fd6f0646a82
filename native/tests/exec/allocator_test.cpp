// The preload list and the loader's cache.

#include "allocator.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "fault.hpp"

namespace atl::exec {
namespace {

TEST(Preload, AllocatorsGoTheRestStays) {
  EXPECT_EQ(without_allocators(""), "");
  EXPECT_EQ(without_allocators("/usr/lib/libjemalloc.so.2"), "");
  EXPECT_EQ(without_allocators("/a/liba.so /b/libtcmalloc_minimal.so.4:libb.so"),
            "/a/liba.so:libb.so");
  EXPECT_EQ(without_allocators("::libmimalloc.so.2.0: libtbbmalloc_proxy.so.2 "), "");
  EXPECT_EQ(without_allocators("/opt/libjemalloc.so/wrapper.so"), "/opt/libjemalloc.so/wrapper.so")
      << "only the file's name counts";
}

TEST(Preload, UnknownAllocator) { EXPECT_THROW((void)preload_for("hoard", "", ""), Fault); }

TEST(Preload, APathThatTheLoaderWouldTakeApartIsPassedOver) {
  // Of this process: other users, and other builds at the same time, have theirs there too.
  const std::string folder = testing::TempDir() + "atoll exec test " + std::to_string(getpid());
  const std::string library = folder + "/libtbbmalloc_proxy.so.2";
  std::filesystem::create_directories(folder);
  std::filesystem::copy_file("/proc/self/exe", library,
                             std::filesystem::copy_options::overwrite_existing);
  std::string preload;
  try {
    preload = preload_for("tbbmalloc", "", folder);
  } catch (const Fault&) {  // not installed on this machine either
  }
  EXPECT_EQ(preload.find(' '), std::string::npos) << preload;
  std::filesystem::remove_all(folder);
}

// A cache as ldconfig writes it (glibc's dl-cache.h).
std::string cache_of(const std::vector<std::pair<std::string, std::string>>& libraries) {
  const auto word = [](std::uint32_t value) {
    std::string bytes(sizeof value, '\0');
    std::memcpy(bytes.data(), &value, sizeof value);
    return bytes;
  };
  const std::size_t strings_at = 48 + 24 * libraries.size();
  std::string entries;
  std::string strings;
  for (const auto& [name, path] : libraries) {
    entries += word(0x0303) + word(static_cast<std::uint32_t>(strings_at + strings.size()));
    strings += name + '\0';
    entries += word(static_cast<std::uint32_t>(strings_at + strings.size()));
    strings += path + '\0';
    entries += std::string(12, '\0');
  }
  return "glibc-ld.so.cache1.1" + word(static_cast<std::uint32_t>(libraries.size())) +
         word(static_cast<std::uint32_t>(strings.size())) + std::string(20, '\0') + entries +
         strings;
}

TEST(LoaderCache, FindsEveryPathOfAName) {
  const std::string cache =
      cache_of({{"liba.so.1", "/x/liba.so.1"}, {"libb.so", "/y/libb.so"}, {"liba.so.1", "/z/a"}});
  EXPECT_EQ(paths_in_cache(cache, "liba.so.1"), (std::vector<std::string>{"/x/liba.so.1", "/z/a"}));
  EXPECT_TRUE(paths_in_cache(cache, "liba.so").empty());
  EXPECT_EQ(paths_in_cache("ld.so-1.7.0" + std::string(53, '\0') + cache, "libb.so"),
            std::vector<std::string>{"/y/libb.so"})
      << "behind the old format";
}

TEST(LoaderCache, CutShortIsNoCrash) {
  const std::string cache = cache_of({{"liba.so.1", "/x/liba.so.1"}, {"libb.so", "/y/libb.so"}});
  for (std::size_t length = 0; length < cache.size(); ++length) {
    EXPECT_LE(paths_in_cache(cache.substr(0, length), "libb.so").size(), 1U);
  }
  std::string wild = cache;
  std::memset(wild.data() + 20, 0xff, 60);
  EXPECT_TRUE(paths_in_cache(wild, "liba.so.1").empty());
}

}  // namespace
}  // namespace atl::exec
