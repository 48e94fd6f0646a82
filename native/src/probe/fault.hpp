// Why a request was rejected or a kernel failed: an answer's `code` and `error` (PROTOCOL.md).
#pragma once

#include <stdexcept>
#include <string>

namespace atl::probe {

enum class Code {
  kArgument,  // the request itself
  kCpu,       // a CPU does not exist, is not allowed or gives no time
  kMemory,    // too little memory, or none on that node
  kKernel,    // the measuring loop failed, or it read other data than it wrote
};

// The message says what is wrong, where, and what to do; it contains no newline.
class Fault : public std::runtime_error {
 public:
  Fault(Code code, const std::string& message) : std::runtime_error(message), code_(code) {}
  [[nodiscard]] Code code() const noexcept { return code_; }

 private:
  Code code_;
};

}  // namespace atl::probe
