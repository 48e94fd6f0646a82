// What is read beside hwloc (system.hpp), from folders that stand for "/"; and sets of CPUs.
#include "system.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "pus.hpp"

namespace atl::topology {
namespace {

namespace fs = std::filesystem;

class FakeRoot : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "atoll-root-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root = name;
  }
  void TearDown() override { fs::remove_all(root); }
  void write(const std::string& path, const std::string& text) const {
    fs::create_directories((root / path).parent_path());
    std::ofstream(root / path) << text;
  }
  fs::path root;
};

constexpr const char* v2_mount = "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
constexpr const char* v1_mount =
    "30 1 0:26 / /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory\n";

TEST_F(FakeRoot, TightestMemoryMaxUpTheTree) {
  write("proc/self/mountinfo", v2_mount);
  write("proc/self/cgroup", "0::/pod/query/worker\n");
  write("sys/fs/cgroup/pod/memory.max", "4096000\n");
  write("sys/fs/cgroup/pod/query/memory.max", "max\n");
  write("sys/fs/cgroup/pod/query/worker/memory.max", "8192000\n");
  write("sys/fs/cgroup/other/memory.max", "1\n");
  EXPECT_EQ(memory_max_bytes(root), 4096000U);
}

TEST_F(FakeRoot, NoLimit) {
  EXPECT_EQ(memory_max_bytes(root), std::nullopt);
  write("proc/self/mountinfo", v1_mount);
  write("proc/self/cgroup", "9:cpu,cpuacct:/\n4:memory:/job\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(memory_max_bytes(root), std::nullopt);
  write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "1048576\n");
  EXPECT_EQ(memory_max_bytes(root), 1048576U);
}

TEST_F(FakeRoot, AContainerMountsOnlyItsPartOfTheTree) {
  write("proc/self/mountinfo",
        "30 1 0:26 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup ro,memory\n");
  write("proc/self/cgroup", "4:memory:/docker/abc\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "2097152\n");
  EXPECT_EQ(memory_max_bytes(root), 2097152U);
}

TEST_F(FakeRoot, OfflineLeavesOutCpusThatAreNotThere) {
  write("sys/devices/system/cpu/offline", "3,8-127\n");
  write("sys/devices/system/cpu/present", "0-8\n");
  EXPECT_EQ(offline_cpus(root), (Pus{3, 8}));
}

TEST_F(FakeRoot, MemTotal) {
  EXPECT_EQ(mem_total_bytes(root), std::nullopt);
  write("proc/meminfo", "MemTotal:       24684084 kB\nMemFree: 1 kB\n");
  EXPECT_EQ(mem_total_bytes(root), 24684084ULL * 1024);
}

TEST_F(FakeRoot, NicsTellNodeAddressAndRate) {
  const std::string device = "sys/devices/pci0000:a0/0000:a1:00.0";
  write(device + "/numa_node", "1\n");
  write(device + "/net/ens1/type", "1\n");
  write(device + "/net/ens1/speed", "25000\n");
  fs::create_directory_symlink(root / device, root / (device + "/net/ens1/device"));
  write("sys/devices/virtual/net/lo/type", "772\n");
  fs::create_directories(root / "sys/class/net");
  fs::create_directory_symlink(root / (device + "/net/ens1"), root / "sys/class/net/ens1");
  fs::create_directory_symlink(root / "sys/devices/virtual/net/lo", root / "sys/class/net/lo");
  const std::vector<Nic> nics = network_interfaces(root);
  ASSERT_EQ(nics.size(), 1U);
  EXPECT_EQ(nics[0].name, "ens1");
  EXPECT_EQ(nics[0].node, 1);
  EXPECT_EQ(nics[0].pci, "0000:a1:00.0");
  EXPECT_EQ(nics[0].rate_mbit_s, 25000);
  for (const char* unknown : {"-1\n", "4294967295\n", "0\n", ""}) {
    write(device + "/net/ens1/speed", unknown);
    EXPECT_EQ(network_interfaces(root)[0].rate_mbit_s, std::nullopt) << unknown;
  }
}

TEST(Pus, ListsThereAndBack) {
  EXPECT_EQ(to_list({0, 1, 2, 5, 7, 8}), "0-2,5,7-8");
  EXPECT_EQ(to_list({}), "");
  Pus pus;
  EXPECT_TRUE(from_list("7-8,0-2,5\n", pus));
  EXPECT_EQ(pus, (Pus{0, 1, 2, 5, 7, 8}));
  for (const char* wrong : {"a", "3-1", "-2", "1;2", "0-99999999999", "5000000"}) {
    EXPECT_FALSE(from_list(wrong, pus)) << wrong;
  }
}

TEST(Pus, LocalNodePrefersPlainMemoryAndTheSmallestNode) {
  const auto node = [](int os_index, Pus pus, const char* subtype) {
    return NumaNode{os_index, std::nullopt, std::move(pus), 0, subtype};
  };
  const std::vector<NumaNode> nodes{node(4, {0, 1, 2, 3}, ""), node(1, {0, 1}, "HBM"),
                                    node(2, {0, 1}, "DRAM"), node(3, {2, 3}, ""),
                                    node(9, {}, "CXL-DRAM")};
  EXPECT_EQ(local_node(nodes, {0}), 2);
  EXPECT_EQ(local_node(nodes, {2, 3}), 3);
  EXPECT_EQ(local_node(nodes, {1, 2}), std::nullopt) << "over two nodes";
  EXPECT_EQ(local_node(nodes, {7}), std::nullopt);
}

}  // namespace
}  // namespace atl::topology
