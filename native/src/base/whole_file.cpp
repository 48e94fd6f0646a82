#include "whole_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace atl::base {

// Not with mkostemp, whose files have mode 0600 with any umask.
WholeFile::WholeFile(std::string path) : path_(std::move(path)) {
  static std::atomic<unsigned> serial{0};
  do {  // a process that was killed left a name that is taken
    temporary_ = path_ + "." + std::to_string(getpid()) + "-" +
                 std::to_string(serial.fetch_add(1, std::memory_order_relaxed));
    file_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (file_ < 0 && errno == EEXIST);
  if (file_ < 0) fail("create");
}

WholeFile::~WholeFile() {
  if (file_ < 0) return;
  close(file_);
  unlink(temporary_.c_str());
}

void WholeFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("write");
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

void WholeFile::commit() {
  if (fsync(file_) != 0 && errno != EINVAL) fail("sync");  // EINVAL: a file system without it
  if (rename(temporary_.c_str(), path_.c_str()) != 0) fail("rename");
  close(file_);
  file_ = -1;
}

void WholeFile::fail(const char* doing) const {
  throw FileFault("cannot " + std::string(doing) + " " + path_ + ": " + std::strerror(errno) +
                  "; choose a path in a folder that you may write, with room on its disk");
}

}  // namespace atl::base
