#include "graph/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>

#include "workload.hpp"

namespace atl::kernels {

MappedFile::MappedFile(const std::string& path)
    : message_("atoll-kernels: " + path +
               ": became shorter while it was read, or its disk failed\n") {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // no wait for a pipe
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
  current_ = this;
  struct sigaction action = {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ::sigaction(SIGBUS, &action, &before_);
}

MappedFile::~MappedFile() {
  ::sigaction(SIGBUS, &before_, nullptr);
  if (bytes_ != nullptr) ::munmap(const_cast<char*>(bytes_), size_);
}

// Calls only what a handler may call.
void MappedFile::on_bus_error(int number, siginfo_t* info, void*) {
  const auto at = reinterpret_cast<std::uintptr_t>(info->si_addr);
  if (at - reinterpret_cast<std::uintptr_t>(current_->bytes_) >= current_->size_) {
    ::sigaction(number, &current_->before_, nullptr);  // who was there before meets it again
    return;
  }
  const std::string& message = current_->message_;
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, message.data(), message.size());
  ::_exit(2);
}

}  // namespace atl::kernels
