// A file's bytes, mapped for reading; one file at a time.
//
// Where the file has become shorter since, or its disk fails, a read of the mapping is SIGBUS. Then
// the program ends with one line and status 2, as for any file that cannot be used.
#pragma once

#include <signal.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace atl::kernels {

class MappedFile {
 public:
  // Throws UsageFault if there is no such file, or it may not be read.
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  [[nodiscard]] std::string_view text() const { return {bytes_, size_}; }

 private:
  static void on_bus_error(int number, siginfo_t* info, void* context);
  static inline const MappedFile* current_ = nullptr;  // the handler's

  const char* bytes_ = nullptr;
  std::size_t size_ = 0;
  std::string message_;
  struct sigaction before_ = {};
};

}  // namespace atl::kernels
