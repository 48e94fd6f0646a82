// A file's bytes, mapped for reading.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <string>
#include <string_view>
#include <system_error>

#include "workload.hpp"

namespace atl::kernels {

class MappedFile {
 public:
  // Throws UsageFault if there is no such file, or it may not be read.
  explicit MappedFile(const std::string& path) {
    const int file =
        ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe must not wait
    struct stat about = {};
    const bool opened = file >= 0 && ::fstat(file, &about) == 0;
    int fault = opened ? 0 : errno;
    const bool regular = opened && S_ISREG(about.st_mode);
    if (regular && about.st_size > 0) {
      size_ = static_cast<std::size_t>(about.st_size);
      void* const mapped = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file, 0);
      if (mapped == MAP_FAILED) fault = errno;
      if (fault == 0) bytes_ = static_cast<const char*>(mapped);
    }
    if (file >= 0) ::close(file);
    if (fault != 0) throw UsageFault(path + ": " + std::generic_category().message(fault));
    if (!regular) throw UsageFault(path + ": not a regular file");
  }
  ~MappedFile() {
    if (bytes_ != nullptr) ::munmap(const_cast<char*>(bytes_), size_);
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  [[nodiscard]] std::string_view text() const { return {bytes_, size_}; }

 private:
  const char* bytes_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace atl::kernels
