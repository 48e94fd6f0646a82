// Why atoll-exec did not start the command: one line for stderr and the exit status.
#pragma once

#include <stdexcept>
#include <string>

namespace atl::exec {

inline constexpr int kExitOwnFailure = 125;  // the launcher itself failed, as with env and nice
inline constexpr int kExitNotExecutable = 126;
inline constexpr int kExitNotFound = 127;

// The message says what is wrong, where, and what to do; it contains no newline.
class Fault : public std::runtime_error {
 public:
  explicit Fault(const std::string& message, int exit_status = kExitOwnFailure)
      : std::runtime_error(message), exit_status_(exit_status) {}

  [[nodiscard]] int exit_status() const noexcept { return exit_status_; }

 private:
  int exit_status_;
};

}  // namespace atl::exec
