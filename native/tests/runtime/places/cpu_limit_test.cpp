// The CPU quota of captured trees of /proc and /sys.
#include "places/cpu_limit.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace {

namespace fs = std::filesystem;
using atl::runtime::cpu_limit;
using atl::runtime::default_workers;

class CpuLimit : public testing::Test {
 protected:
  CpuLimit() {
    std::string folder = (fs::temp_directory_path() / "atoll-cpu-limit-XXXXXX").string();
    if (mkdtemp(folder.data()) == nullptr) throw std::runtime_error("no temporary folder");
    root_ = folder;
  }
  ~CpuLimit() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  void version_2(const std::string& group) {
    write("proc/self/cgroup", "0::" + group + "\n");
    write("proc/self/mountinfo",
          "31 23 0:28 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n");
  }
  void version_1(const std::string& group, const std::string& mounted) {
    write("proc/self/cgroup", "4:memory:" + group + "\n3:cpu,cpuacct:" + group + "\n0::/\n");
    write("proc/self/mountinfo", "32 31 0:29 " + mounted +
                                     " /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup "
                                     "rw,cpu,cpuacct\n");
  }

  fs::path root_;
};

TEST_F(CpuLimit, NoCgroupHasNone) { EXPECT_EQ(cpu_limit(root_), std::nullopt); }

TEST_F(CpuLimit, TheGroupsOwnOfVersion2) {
  version_2("/user.slice/job");
  write("sys/fs/cgroup/user.slice/job/cpu.max", "150000 100000\n");
  EXPECT_EQ(cpu_limit(root_), 1.5);
}

TEST_F(CpuLimit, MaxIsNone) {
  version_2("/");
  write("sys/fs/cgroup/cpu.max", "max 100000\n");
  EXPECT_EQ(cpu_limit(root_), std::nullopt);
}

TEST_F(CpuLimit, TheLeastOfAllGroupsAbove) {
  version_2("/a/b/c");
  write("sys/fs/cgroup/a/b/c/cpu.max", "max 100000\n");
  write("sys/fs/cgroup/a/b/cpu.max", "800000 100000\n");
  write("sys/fs/cgroup/a/cpu.max", "100000 50000\n");
  EXPECT_EQ(cpu_limit(root_), 2);
}

TEST_F(CpuLimit, TheQuotaOfVersion1) {
  version_1("/docker/x", "/");
  write("sys/fs/cgroup/cpu,cpuacct/docker/x/cpu.cfs_quota_us", "250000\n");
  write("sys/fs/cgroup/cpu,cpuacct/docker/x/cpu.cfs_period_us", "100000\n");
  write("sys/fs/cgroup/cpu,cpuacct/docker/cpu.cfs_quota_us", "-1\n");
  write("sys/fs/cgroup/cpu,cpuacct/docker/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cpu_limit(root_), 2.5);
}

// Without a namespace of its own a container sees the host's path, and only its own folder.
TEST_F(CpuLimit, AContainerThatSeesTheHostsPath) {
  version_1("/docker/x", "/docker/x");
  write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "50000\n");
  write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cpu_limit(root_), 0.5);
}

TEST_F(CpuLimit, NonsenseIsNone) {
  version_2("/");
  for (const char* text : {"", "0 100000", "x y", "100000", "100000 0", "-5 100000"}) {
    write("sys/fs/cgroup/cpu.max", text);
    EXPECT_EQ(cpu_limit(root_), std::nullopt) << text;
  }
}

TEST(DefaultWorkers, OnePerCoreUpToTheLimit) {
  EXPECT_EQ(default_workers(64, std::nullopt), 64);
  EXPECT_EQ(default_workers(64, 2), 2);
  EXPECT_EQ(default_workers(64, 1.5), 2);
  EXPECT_EQ(default_workers(64, 0.25), 1);
  EXPECT_EQ(default_workers(64, 64), 64);
  EXPECT_EQ(default_workers(2, 1e300), 2);
}

}  // namespace
