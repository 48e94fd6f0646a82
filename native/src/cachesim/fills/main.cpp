// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
// Counts cache lines in a guest with simulated caches, by where they came from. All that runs in
// the guest is counted.
//
//   atoll-fills on | off | read            by hand; read prints what was counted so far, as JSON
//   atoll-fills off --all                  also what killed programs left on
//   atoll-fills [--json FILE] -- COMMAND   while a command runs: a table on stderr, also JSON
//
// Exit status: the command's, as a shell gives it; 2 wrong use or no simulated caches.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>

#include "../board_of_guest.hpp"
#include "counting.hpp"
#include "fills.hpp"

namespace {

using namespace atl::cachesim;

[[noreturn]] void become(char** command) {
  execvp(command[0], command);
  const int fault = errno;
  std::fprintf(stderr, "atoll-fills: %s: %s\n", command[0], std::strerror(fault));
  _exit(fault == ENOENT ? 127 : 126);
}

// The command's status, as waitpid gives it.
int status_of(char** command) {
  // The terminal's Ctrl-C is the command's, as with time(1).
  const auto interrupt = signal(SIGINT, SIG_IGN), quit = signal(SIGQUIT, SIG_IGN);
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error(std::string("cannot fork: ") + std::strerror(errno));
  if (child == 0) {
    signal(SIGINT, interrupt);
    signal(SIGQUIT, quit);
    become(command);
  }
  int status = 0;
  while (waitpid(child, &status, 0) == -1 && errno == EINTR) {
  }
  return status;
}

// A table on stderr. `path`: also for JSON; may be empty.
int run(const std::string& path, char** command) {
  Board& board = open_board();
  std::ofstream file;
  if (!path.empty()) file.open(path);
  if (!file) throw std::runtime_error(path + ": " + std::strerror(errno));
  int status = 0;
  Counts counted;
  {
    const Counting counting(board);
    const Counts before = read(board);
    status = status_of(command);
    counted = difference(before, read(board));
  }
  std::fprintf(stderr, "\n%s", table(board, counted).c_str());
  if (!path.empty() && !(file << json(board, counted) << std::flush)) {
    throw std::runtime_error(path + ": " + std::strerror(errno));
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

// Until `off`, even if this program has long ended.
int count_by_hand(bool wanted) {
  Board& board = open_board();
  if (board.by_hand.exchange(wanted ? 1 : 0) == (wanted ? 1U : 0U)) {
    throw std::runtime_error(wanted ? "counting is on already; `atoll-fills off` ends it"
                             : board.wanted.load() == 0
                                 ? "counting is off"
                                 : "counting was not begun with `atoll-fills on`; "
                                   "`atoll-fills off --all` ends it for all programs");
  }
  count(board, wanted);
  return 0;
}

int end_for_all() {
  end_counting(open_board());
  return 0;
}

int print_counts() {
  Board& board = open_board();
  if (board.counting.load() == 0) {
    throw std::runtime_error("counting is off; `atoll-fills on` begins it");
  }
  std::fputs(json(board, read(board)).c_str(), stdout);
  return 0;
}

int obey(int argc, char** argv) {
  const auto is = [&](int at, std::string_view word) { return at < argc && argv[at] == word; };
  if (argc == 2 && is(1, "on")) return count_by_hand(true);
  if (argc == 2 && is(1, "off")) return count_by_hand(false);
  if (argc == 3 && is(1, "off") && is(2, "--all")) return end_for_all();
  if (argc == 2 && is(1, "read")) return print_counts();
  if (argc > 2 && is(1, "--")) return run("", argv + 2);
  if (argc > 4 && is(1, "--json") && is(3, "--")) return run(argv[2], argv + 4);
  std::fputs(
      "usage: atoll-fills on | off [--all] | read\n"
      "       atoll-fills [--json FILE] -- COMMAND\n"
      "in a guest with simulated caches\n",
      stderr);
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return obey(argc, argv);
  } catch (const std::exception& fault) {
    std::fprintf(stderr, "atoll-fills: %s\n", fault.what());
    return 2;
  }
}
