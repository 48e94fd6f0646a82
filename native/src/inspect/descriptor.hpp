// A file descriptor that closes itself, and the error of a system call.
#pragma once

#include <unistd.h>

#include <string>
#include <system_error>

namespace atl::inspect {

// Throws std::system_error with errno `number`; `what` names the call or the file.
[[noreturn]] inline void fail(int number, const std::string& what) {
  throw std::system_error(number, std::generic_category(), what);
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  explicit operator bool() const { return number_ >= 0; }
  int get() const { return number_; }

 private:
  int number_;
};

}  // namespace atl::inspect
