// A file that appears whole or not at all: written under another name in the same folder, synced to
// disk, then renamed; the old content stays until then. Throws FileFault if that fails, and leaves
// nothing behind.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace atl::base {

class FileFault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class WholeFile {
 public:
  explicit WholeFile(std::string path);
  WholeFile(const WholeFile&) = delete;
  WholeFile& operator=(const WholeFile&) = delete;
  ~WholeFile();  // without `commit`: nothing was written

  void write(std::string_view bytes);
  void commit();

 private:
  [[noreturn]] void fail(const char* doing) const;

  std::string path_;
  std::string temporary_;
  int file_ = -1;
};

}  // namespace atl::base
