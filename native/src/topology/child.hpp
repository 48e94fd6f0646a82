// Runs work in a child process, so that nothing it does can hurt the caller.
//
// hwloc trusts its input: a hand-edited file can make it abort, crash, loop or allocate without
// end, and it prints to stderr. The child has limits on time and memory, its output goes to a
// file in memory, and it dies with its parent. No core file is left.
#pragma once

#include <functional>
#include <string>

namespace atl::topology {

// Marks that the input was accepted: a crash after this is a fault of ours (OwnFault).
class Progress {
 public:
  explicit Progress(int pipe) : pipe_(pipe) {}
  void input_accepted() const;
  // What was printed so far, by hwloc.
  [[nodiscard]] static std::string printed();

 private:
  int pipe_;
};

// The text that `work` returns. A Fault that it throws is thrown here; any other end is a Fault
// that begins with `subject`. Limits apply if `foreign`.
std::string in_child(const std::string& subject, bool foreign,
                     const std::function<std::string(const Progress&)>& work);

// The first line of hwloc's output that says something; its banners are drawn with asterisks.
std::string first_line(const std::string& printed);

}  // namespace atl::topology
