#include "whole_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "atoll/runtime/places.hpp"

namespace atl::runtime {

WholeFile::WholeFile(std::string path) : path_(std::move(path)), temporary_(path_ + ".XXXXXX") {
  file_ = mkostemp(temporary_.data(), O_CLOEXEC);
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
  // mkostemp gives 0600; the file shall have what any new file has. umask can only be read by
  // setting it, which other threads would see; 0644 is what nearly every umask leaves.
  if (fchmod(file_, 0644) != 0) fail("set the mode of");
  if (fsync(file_) != 0 && errno != EINVAL) fail("sync");  // EINVAL: a file system without it
  if (rename(temporary_.c_str(), path_.c_str()) != 0) fail("rename");
  close(file_);
  file_ = -1;
}

void WholeFile::fail(const char* doing) const {
  throw RuntimeFault("cannot " + std::string(doing) + " " + path_ + ": " + std::strerror(errno) +
                     "; choose a path in a folder that you may write, with room on its disk");
}

}  // namespace atl::runtime
