// How the governor reads resctrl: from a tree made by hand, whose files may take long.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "runtime/folder.hpp"
#include "runtime/parts.hpp"
#include "scheduler/decided.hpp"
#include "scheduler/team.hpp"

namespace {

using atl::test::Folder;
using atl::test::soon;

// A file, in place of the one there, whose readers wait for `answer`.
class SlowFile {
 public:
  explicit SlowFile(std::string path) : path_(std::move(path)) {
    const std::string fresh = path_ + ".fresh";
    if (mkfifo(fresh.c_str(), 0600) != 0) throw std::runtime_error("no pipe");
    std::filesystem::rename(fresh, path_);
  }
  // Until somebody reads it.
  bool is_read() {
    return soon([&] {
      end_ = open(path_.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
      return end_ >= 0;
    });
  }
  // The text for this reader, and, in an ordinary file, for later ones.
  void answer(const Folder& folder, const std::string& name, const std::string& text) {
    folder.write(name + ".fresh", text);
    std::filesystem::rename(folder.path + "/" + name + ".fresh", path_);
    EXPECT_EQ(write(end_, text.data(), text.size()), std::ssize(text));
    close(end_);
  }

 private:
  const std::string path_;
  int end_ = -1;
};

TEST(Occupancy, NoCallWaitsWhileTheGovernorReadsResctrl) {
  const Folder folder;
  // The next runtime's group: the number after the last one.
  const std::string last = atl::runtime::own_group_name();
  const std::size_t dash = last.rfind('-') + 1;
  const std::string group =
      "mon_groups/" + last.substr(0, dash) + std::to_string(std::stoi(last.substr(dash)) + 1);
  const std::string occupancy = group + "/mon_data/mon_L3_00/llc_occupancy";
  folder.write("mountinfo", "99 30 0:50 / " + folder.path + " rw - resctrl resctrl rw\n");
  folder.write(group + "/tasks", "");
  folder.write(occupancy, "4096\n");

  std::atomic<bool> over{false};
  atl::RuntimeOptions options = atl::test::with_workers(2);
  options.interval = std::chrono::milliseconds(1);
  options.approach = "cache-size-centric";
  options.lent = {
      .work = [&](int) { over.wait(false); }, .busy = [] { return true; }, .placed = [](auto) {}};
  atl::runtime::Decided all = atl::runtime::decided(options);
  all.mountinfo = folder.path + "/mountinfo";
  {
    atl::runtime::Team team(all);
    SlowFile file(folder.path + "/" + occupancy);
    EXPECT_TRUE(file.is_read());
    std::atomic<bool> called{false};
    std::thread caller([&] {
      team.governor().locked([] { return 0; });
      team.profiler().sample();
      called = true;
    });
    EXPECT_TRUE(soon([&] { return called.load(); }));
    file.answer(folder, occupancy, "8192\n");
    caller.join();
    EXPECT_TRUE(soon([&] {
      return team.governor().locked(
          [&] { return team.steered().working_set_source == atl::WorkingSetSource::resctrl; });
    }));
    over = true;
    over.notify_all();
  }
}

}  // namespace
