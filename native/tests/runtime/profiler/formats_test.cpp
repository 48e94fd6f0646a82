// JSON, files written whole, the profile's format against its golden sample, texts of resctrl and
// /proc. The resctrl trees are made by hand after the kernel's resctrl.rst.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <thread>

#include "atoll/runtime/places.hpp"
#include "atoll/runtime/profile.hpp"
#include "base/whole_file.hpp"
#include "profiler/json_writer.hpp"
#include "profiler/resctrl.hpp"
#include "profiler/text.hpp"
#include "profiler/thread_usage.hpp"
#include "runtime/folder.hpp"

namespace atl::runtime {
namespace {

namespace fs = std::filesystem;

using base::FileFault;
using base::WholeFile;
using test::Folder;

nlohmann::json text_through(std::string_view text) {
  std::string out;
  JsonWriter json([&](std::string_view part) { out += part; });
  json.open_array();
  json.text(text);
  json.close_array();
  json.flush();
  return nlohmann::json::parse(out).at(0);
}

TEST(JsonWriter, TextsComeBack) {
  for (const std::string_view text :
       {std::string_view("plain"), std::string_view("quote \" back \\ slash /"),
        std::string_view("\0\n\t\x1f", 4), std::string_view("\x7f"),
        std::string_view("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x8f\x9d")}) {
    EXPECT_EQ(text_through(text), text);
  }
}

TEST(JsonWriter, WhatIsNoUtf8IsReplaced) {
  const std::string bad = "\xef\xbf\xbd";
  EXPECT_EQ(text_through("a\xff z"), "a" + bad + " z");
  EXPECT_EQ(text_through("\xc3"), bad);                      // cut short
  EXPECT_EQ(text_through("\xc0\xaf"), bad + bad);            // a longer form of '/'
  EXPECT_EQ(text_through("\xed\xa0\x80"), bad + bad + bad);  // a surrogate
  EXPECT_EQ(text_through("\xf5\x80\x80\x80"), bad + bad + bad + bad);
}

TEST(JsonWriter, CommasAndNumbers) {
  std::string out;
  JsonWriter json([&](std::string_view part) { out += part; });
  json.open_object();
  json.field("a", std::uint64_t{18446744073709551615U});
  json.field("b", 0.1);
  json.field("c", std::nan(""));
  json.field("d", std::optional<std::uint64_t>());
  json.key("e");
  json.open_array();
  json.open_array();
  json.close_array();
  json.number(-1);
  json.number(std::numeric_limits<double>::infinity());
  json.close_array();
  json.key("f");
  json.open_object();
  json.close_object();
  json.close_object();
  json.flush();
  EXPECT_EQ(out, R"({"a":18446744073709551615,"b":0.1,"c":null,"d":null,"e":[[],-1,null],"f":{}})");
}

TEST(WholeFile, IsThereWholeOrNotAtAll) {
  const Folder folder;
  folder.write("out", "old");
  const std::string path = folder.path + "/out";
  {
    WholeFile file(path);
    file.write("new");
  }
  EXPECT_EQ(read_text(path), "old");
  EXPECT_EQ(folder.files(), 1U);
  {
    WholeFile file(path);
    file.write("new");
    EXPECT_EQ(read_text(path), "old");
    file.commit();
  }
  EXPECT_EQ(read_text(path), "new");
  EXPECT_EQ(folder.files(), 1U);
  EXPECT_THROW(WholeFile(folder.path + "/no/such"), FileFault);
  fs::create_directory(folder.path + "/taken");
  WholeFile file(folder.path + "/taken");
  EXPECT_THROW(file.commit(), FileFault);
  EXPECT_THROW(write_profile_json({}, folder.path + "/taken"), RuntimeFault);
}

TEST(WholeFile, HasTheRightsThatAnyNewFileHas) {
  const Folder folder;
  for (const mode_t umask_bits : {022U, 077U}) {
    const mode_t before = umask(umask_bits);
    WholeFile file(folder.path + "/out");
    umask(before);
    file.commit();
    struct stat found{};
    ASSERT_EQ(stat((folder.path + "/out").c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 0777U, 0666U & ~umask_bits);
  }
}

Counts counts_from(std::uint64_t first) {
  Counts counts;
  for_each_count([&](const char*, std::uint64_t& count) { count = first++; }, counts);
  return counts;
}

FillCounts fills_from(std::uint64_t first, double running_share) {
  FillCounts fills;
  for (const FillSource source :
       {FillSource::local_chiplet, FillSource::remote_chiplet, FillSource::remote_node,
        FillSource::memory_local, FillSource::memory_remote}) {
    fills.of(source) = first++;
  }
  fills.running_share = running_share;
  return fills;
}

// One worker with all values, one with almost none.
Profile sample_profile() {
  Profile profile;
  profile.seconds = 12.5;
  profile.cpu = "AMD Zen 4";
  profile.fills_of = "fills of L1D, prefetches included";
  profile.fills_source = "hardware";
  WorkerProfile full;
  full.worker = 0;
  full.tid = 4242;
  full.counts = counts_from(1);
  full.fills = fills_from(1000, 0.8);
  full.usage = {12.25, 0.125, 100, 2, 30, 40, 5};
  full.sections.push_back({"build \"side\"", 3, 4.5, counts_from(1), 0.5, fills_from(10, 1)});
  full.sections.push_back({"probe phase", 1, 2.25, counts_from(2), 0, {}});
  full.types.push_back({"program+0x1a2b", 0.25, fills_from(20, 1)});
  full.types.push_back({"(resumed)", 0.125, fills_from(30, 0.5)});
  full.lost_trace_events = 7;
  profile.workers.push_back(full);
  profile.workers.push_back({.worker = 1,
                             .tid = 0,
                             .counts = {},
                             .fills = {},
                             .usage = {},
                             .sections = {},
                             .types = {},
                             .lost_trace_events = 0});
  profile.l3.push_back({0, 16'777'216, 1'000'000'000, 900'000'000});
  profile.l3.push_back({8, std::nullopt, std::nullopt, std::nullopt});
  profile.working_set_bytes = 17'895'697;
  profile.working_set_source = "resctrl";
  profile.remarks.emplace_back(
      "l3: worker threads are missing (Invalid argument): they are in "
      "another resctrl control group");
  return profile;
}

// The sample is validated by tests/unit/runtime/test_profile.py, so both sides have one format.
TEST(ProfileJson, IsTheGoldenSample) {
  const std::string path = ATOLL_TEST_DATA "/runtime-profile.json";
  EXPECT_EQ(read_text(path), profile_json(sample_profile()) + "\n")
      << "where the change is meant, write the second text to " << path;
}

TEST(ProfileJson, IsWritten) {
  const Folder folder;
  write_profile_json(sample_profile(), folder.path + "/profile.json");
  const auto text = read_text(folder.path + "/profile.json");
  ASSERT_TRUE(text);
  EXPECT_EQ(nlohmann::json::parse(*text).at("workers").at(0).at("sections").at(0).at("name"),
            "build \"side\"");
}

TEST(Resctrl, IsFoundInMountinfo) {
  EXPECT_EQ(find_resctrl("25 30 0:23 / /proc rw - proc proc rw\n"
                         "99 30 0:50 / /sys/fs/resctrl rw,relatime shared:9 - resctrl resctrl rw"),
            "/sys/fs/resctrl");
  EXPECT_FALSE(find_resctrl("25 30 0:23 / /resctrl rw - tmpfs resctrl rw\nbroken\n - resctrl"));
  EXPECT_FALSE(find_resctrl(""));
}

void make_monitors(const Folder& tree, const std::string& group, const char* total) {
  const std::string data = group + "mon_data/";
  tree.write(data + "mon_L3_00/llc_occupancy", "1048576\n");
  tree.write(data + "mon_L3_00/mbm_total_bytes", total);
  tree.write(data + "mon_L3_00/mbm_local_bytes", "Unavailable\n");
  tree.write(data + "mon_L3_08/llc_occupancy", "Error\n");
  tree.write(data + "mon_sub_L3_01/llc_occupancy", "1\n");
}

TEST(Resctrl, AMonitoringGroupComesBeforeItsControlGroup) {
  const Folder tree;
  tree.write("tasks", "1\n42\n43\n");
  tree.write("mon_groups/ours/tasks", "43\n");
  tree.write("other/tasks", "50\n");
  tree.write("other/mon_groups/x/tasks", "");
  EXPECT_EQ(monitors_of(tree.path, 42), tree.path);
  EXPECT_EQ(monitors_of(tree.path, 43), tree.path + "/mon_groups/ours");
  EXPECT_EQ(monitors_of(tree.path, 50), tree.path + "/other");
  EXPECT_EQ(monitors_of(tree.path, 4), std::nullopt);
}

TEST(Resctrl, PresentGroupWhereNoneMayBeMade) {
  const Folder tree;
  tree.write("tasks", "42\n");
  tree.write("mon_groups", "not a folder: mkdir fails, as it does without the right to");
  make_monitors(tree, "", "1000\n");
  const L3Monitor monitor(tree.path, "atoll-7-0", 42);
  EXPECT_NE(monitor.remark().find("no group of our own"), std::string::npos);
  tree.write("mon_data/mon_L3_00/mbm_total_bytes", "5000\n");
  const auto l3 = monitor.read();
  ASSERT_EQ(l3.size(), 2U);
  EXPECT_EQ(l3[0].l3, 0);
  EXPECT_EQ(l3[0].occupancy_bytes, 1048576U);
  EXPECT_EQ(l3[0].memory_bytes, 4000U);
  EXPECT_EQ(l3[0].local_memory_bytes, std::nullopt);
  EXPECT_EQ(l3[1].l3, 8);
  EXPECT_EQ(l3[1].occupancy_bytes, std::nullopt);
  tree.write("mon_data/mon_L3_00/mbm_total_bytes", "10\n");  // fell: it is another's now
  EXPECT_EQ(monitor.read()[0].memory_bytes, std::nullopt);
}

// A real mkdir there brings files along; here the group lies ready, as one left over would.
TEST(Resctrl, OwnGroupGetsTheWorkers) {
  const Folder tree;
  tree.write("tasks", "42\n43\n");
  tree.write("mon_groups/atoll-7-0/tasks", "");
  make_monitors(tree, "mon_groups/atoll-7-0/", "0\n");
  L3Monitor monitor(tree.path, "atoll-7-0", 42);
  EXPECT_EQ(monitor.remark(), "");
  monitor.add_thread(42);
  monitor.add_thread(43);
  EXPECT_EQ(read_text(tree.path + "/mon_groups/atoll-7-0/tasks"), "42\n43\n");
  EXPECT_EQ(monitor.read().size(), 2U);
}

TEST(Resctrl, OnlyAGroupOfOurOwnWithAllWorkersCountsThemAlone) {
  const Folder tree;
  tree.write("tasks", "42\n");
  tree.write("mon_groups/atoll-7-0/tasks", "");
  make_monitors(tree, "mon_groups/atoll-7-0/", "0\n");
  L3Monitor own(tree.path, "atoll-7-0", 42);
  EXPECT_TRUE(own.counts_workers_alone());
  fs::remove(tree.path + "/mon_groups/atoll-7-0/tasks");
  own.add_thread(43);  // refused
  EXPECT_FALSE(own.counts_workers_alone());

  const Folder shared;
  shared.write("tasks", "42\n");
  shared.write("mon_groups", "not a folder");
  make_monitors(shared, "", "0\n");
  EXPECT_FALSE(L3Monitor(shared.path, "atoll-7-0", 42).counts_workers_alone());
}

TEST(Resctrl, TheL3sOfCpusAreTheIdsOfTheirCaches) {
  const Folder cpus;
  cpus.write("cpu17/cache/index3/id", "2\n");
  cpus.write("cpu18/cache/index3/id", "0\n");
  cpus.write("cpu19/cache/index3/id", "2\n");
  cpus.write("cpu20/cache/index3/id", "-1\n");
  using L3s = std::vector<int>;
  EXPECT_EQ(l3s_of_cpus(cpus.path, L3s{17, 18, 19}), (L3s{2, 0}));
  EXPECT_EQ(l3s_of_cpus(cpus.path, L3s{17, 20}), L3s{});
  EXPECT_EQ(l3s_of_cpus(cpus.path, L3s{17, 21}), L3s{}) << "it has none";
}

TEST(Resctrl, AGroupThatWasMadeIsRemoved) {
  const Folder tree;
  fs::create_directory(tree.path + "/mon_groups");
  const std::string group = tree.path + "/mon_groups/atoll-7-0";
  {
    L3Monitor monitor(tree.path, "atoll-7-0", 42);
    EXPECT_TRUE(fs::exists(group));
    monitor.add_thread(42);  // no file of the kernel's there
    EXPECT_NE(monitor.remark(), "");
    EXPECT_TRUE(monitor.read().empty());
  }
  EXPECT_FALSE(fs::exists(group));
}

TEST(Resctrl, RuntimesOfOneProcessHaveGroupsOfTheirOwn) {
  const Folder tree;
  fs::create_directory(tree.path + "/mon_groups");
  const std::string first = own_group_name();
  const std::string second = own_group_name();
  const L3Monitor stays(tree.path, first, 42);
  {
    const L3Monitor goes(tree.path, second, 42);
  }
  EXPECT_TRUE(fs::exists(tree.path + "/mon_groups/" + first));
  EXPECT_FALSE(fs::exists(tree.path + "/mon_groups/" + second));
}

TEST(ThreadUsage, ReadsProcsTexts) {
  const ThreadUsage usage = thread_usage(
      {.stat = "42 (a) b (c) R 1 42 42 0 -1 4194304 100 0 2 0 700 50 0 0 20 0 1 0 1 2 3\n",
       .status = "Name:\ta\nvoluntary_ctxt_switches:\t30\nnonvoluntary_ctxt_switches:\t40\n",
       .schedstat = "1500000000 250000000 12\n",
       .sched = "a (42, #threads: 1)\n---\nse.nr_migrations     :     5\n"});
  EXPECT_EQ(usage.minor_faults, 100U);
  EXPECT_EQ(usage.major_faults, 2U);
  EXPECT_EQ(usage.voluntary_switches, 30U);
  EXPECT_EQ(usage.involuntary_switches, 40U);
  EXPECT_EQ(usage.cpu_migrations, 5U);
  EXPECT_DOUBLE_EQ(usage.cpu_s.value(), 1.5);
  EXPECT_DOUBLE_EQ(usage.run_delay_s.value(), 0.25);
}

TEST(ThreadUsage, WhatIsMissingStaysEmpty) {
  const ThreadUsage none = thread_usage({});
  EXPECT_FALSE(none.cpu_s || none.run_delay_s || none.minor_faults || none.cpu_migrations);
  const ThreadUsage ticks = thread_usage({.stat = "42 (x) R 1 42 42 0 -1 0 1 0 x 0 100 50 0",
                                          .status = "",
                                          .schedstat = "broken",
                                          .sched = ""});
  EXPECT_DOUBLE_EQ(ticks.cpu_s.value(), 150.0 / static_cast<double>(sysconf(_SC_CLK_TCK)));
  EXPECT_EQ(ticks.minor_faults, 1U);
  EXPECT_EQ(ticks.major_faults, std::nullopt);
}

TEST(ThreadUsage, OfThisThread) {
  EXPECT_TRUE(usage_of_thread(gettid()).minor_faults);
  EXPECT_FALSE(usage_of_thread(0x3fffffff).minor_faults);
}

}  // namespace
}  // namespace atl::runtime
