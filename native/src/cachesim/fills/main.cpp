// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
// atoll-fills -- COMMAND: run a command in a guest with simulated caches, and print from where its
// lines came, on stderr. All that runs in the guest meanwhile is counted.
//
// Exit status: the command's, as a shell gives it; 2 wrong use or no simulated caches.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string_view>

#include "../board_of_guest.hpp"
#include "fills.hpp"

namespace {

using namespace atl::cachesim;

[[noreturn]] void become(char** command) {
  execvp(command[0], command);
  const int fault = errno;
  std::fprintf(stderr, "atoll-fills: %s: %s\n", command[0], std::strerror(fault));
  _exit(fault == ENOENT ? 127 : 126);
}

int run(char** command) {
  Board& board = open_board();
  count(board, true);
  const FillsOfChiplets before = fills_of(board);
  const std::uint64_t lost_before = board.lost_patience.load();
  // The terminal's Ctrl-C is the command's, as with time(1).
  const auto interrupt = signal(SIGINT, SIG_IGN), quit = signal(SIGQUIT, SIG_IGN);
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGINT, interrupt);
    signal(SIGQUIT, quit);
    become(command);
  }
  int status = 0;
  if (child > 0) {
    while (waitpid(child, &status, 0) == -1 && errno == EINTR) {
    }
  }
  const FillsOfChiplets after = fills_of(board);
  const std::uint64_t lost = board.lost_patience.load() - lost_before;
  count(board, false);
  if (child < 0) throw std::runtime_error("cannot fork");
  std::fprintf(stderr, "\n%s\nwaits for the slowest CPU that were given up: %llu\n",
               table(difference(before, after)).c_str(), static_cast<unsigned long long>(lost));
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3 || std::string_view(argv[1]) != "--") {
    std::fputs("usage: atoll-fills -- COMMAND; in a guest with simulated caches\n", stderr);
    return 2;
  }
  try {
    return run(argv + 2);
  } catch (const std::exception& fault) {
    std::fprintf(stderr, "atoll-fills: %s\n", fault.what());
    return 2;
  }
}
