// Why a request was refused or a kernel failed: the `code` and `error` of an answer (PROTOCOL.md).
#pragma once

#include <stdexcept>
#include <string>

namespace atl::probe {

enum class Code {
  kArgument,  // the request itself
  kCpu,       // a CPU that is not there, not ours, or gives no time
  kMemory,    // too little memory, or not on that node
  kKernel,    // the measuring loop failed, or what it wrote was not what it read
};

// The message says what is wrong, where, and what to do; it holds no newline.
class Fault : public std::runtime_error {
 public:
  Fault(Code code, const std::string& message) : std::runtime_error(message), code_(code) {}
  [[nodiscard]] Code code() const noexcept { return code_; }

 private:
  Code code_;
};

}  // namespace atl::probe
