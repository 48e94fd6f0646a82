// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
// Counting that ends when this program does, however it ends.
#pragma once

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>

#include "../board_of_guest.hpp"

namespace atl::cachesim {

// Counts while it lives. A process of its own does so, until its connection to this one closes. It
// has a session of its own, so that what ends this program's group does not end it.
class Counting {
 public:
  explicit Counting(Board& board) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0 || (keeper_ = fork()) < 0) {
      throw std::runtime_error(std::string("cannot count: ") + std::strerror(errno));
    }
    if (keeper_ == 0) {
      close(ends[0]);
      keep(board, ends[1]);
    }
    close(ends[1]);
    connection_ = ends[0];
    if (!heard()) throw std::runtime_error("cannot count: the process that should has ended");
  }
  ~Counting() {
    close(connection_);
    while (waitpid(keeper_, nullptr, 0) == -1 && errno == EINTR) {
    }
  }
  Counting(const Counting&) = delete;
  Counting& operator=(const Counting&) = delete;

 private:
  [[noreturn]] static void keep(Board& board, int connection) noexcept {
    setsid();
    count(board, true);
    char byte = 0;
    (void)send(connection, &byte, 1, MSG_NOSIGNAL);
    while (recv(connection, &byte, 1, 0) == -1 && errno == EINTR) {
    }
    count(board, false);
    _exit(0);
  }
  // Waits until the keeper counts; false if it has ended.
  [[nodiscard]] bool heard() const {
    char byte = 0;
    ssize_t bytes = 0;
    while ((bytes = recv(connection_, &byte, 1, 0)) == -1 && errno == EINTR) {
    }
    return bytes == 1;
  }

  int connection_ = -1;
  pid_t keeper_ = -1;
};

}  // namespace atl::cachesim
