// Runs work in a child process, so that it cannot harm the caller.
//
// hwloc trusts its input: a hand-edited file can make it abort, crash, loop or allocate without
// end, and it prints to stderr. The child has limits on time and memory, writes its output to a
// file in memory, dies with its parent and leaves no core file.
#pragma once

#include <functional>
#include <string>

namespace atl::topology {

// Reports that the input was accepted: a later crash is a bug in this library (OwnFault).
class Progress {
 public:
  explicit Progress(int pipe) : pipe_(pipe) {}
  void input_accepted() const;
  // Returns what hwloc has printed so far.
  [[nodiscard]] static std::string printed();

 private:
  int pipe_;
};

// Returns the text from `work`. Rethrows a Fault that `work` throws. Any other end is a Fault whose
// message begins with `subject`. The limits apply if `foreign`.
std::string in_child(const std::string& subject, bool foreign,
                     const std::function<std::string(const Progress&)>& work);

// Returns the first line of hwloc's output with text; hwloc draws banners with asterisks.
std::string first_line(const std::string& printed);

}  // namespace atl::topology
