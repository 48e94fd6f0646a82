// atoll-probe: runs measurements; one JSON line in, one JSON line out (PROTOCOL.md).
//
//   echo '{"do": "ping", "cpus": [0, 1], "home": 0, "op": "cas"}' | atoll-probe
//
// It ends at the end of its input, at SIGTERM, when nobody reads its answers any more, and when the
// process that started it ends, even in the middle of a kernel.
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include "protocol.hpp"

namespace atl::probe {
namespace {

constexpr const char* kHelp =
    R"(Usage: atoll-probe [--help | --version]

Reads requests from stdin, one JSON object per line, and prints one line for each.
'atoll measure' uses this program. To try it by hand:

  echo '{"do": "ping", "cpus": [0, 1], "home": 0, "op": "cas"}' | atoll-probe
)";

// Lines of stdin. A line that is too long is cut, so that it is rejected without using memory.
class Lines {
 public:
  bool next(std::string& line) {
    line.clear();
    for (;;) {
      const std::size_t end = pending_.find('\n');
      line.append(pending_, 0, end);
      if (line.size() > kMostLineBytes) line.resize(kMostLineBytes + 1);
      if (end != std::string::npos) {
        pending_.erase(0, end + 1);
        return true;
      }
      char chunk[1 << 16];
      ssize_t count = 0;
      do {
        count = read(STDIN_FILENO, chunk, sizeof(chunk));
      } while (count < 0 && errno == EINTR);
      if (count <= 0) {
        pending_.clear();
        return !line.empty();
      }
      pending_.assign(chunk, static_cast<std::size_t>(count));
    }
  }

 private:
  std::string pending_;
};

int serve() {
  Lines lines;
  for (std::string line; lines.next(line);) {
    const std::string answered = line.size() > kMostLineBytes
                                     ? refusal(Code::kArgument, "this line is too long")
                                     : answer(line);
    if (std::fwrite(answered.data(), 1, answered.size(), stdout) != answered.size() ||
        std::fputc('\n', stdout) == EOF || std::fflush(stdout) != 0) {
      std::fprintf(stderr, "atoll-probe: stdout: %s\n", std::strerror(errno));
      return 1;
    }
  }
  return 0;
}

}  // namespace
}  // namespace atl::probe

int main(int argc, char** argv) {
  const std::string_view first = argc > 1 ? argv[1] : "";
  if (argc == 2 && first == "--help") {
    std::fputs(atl::probe::kHelp, stdout);
    return 0;
  }
  if (argc == 2 && first == "--version") {
    std::puts("atoll-probe " ATOLL_VERSION);
    return 0;
  }
  if (argc > 1) {
    std::fputs("atoll-probe: takes no arguments; requests come from stdin (--help)\n", stderr);
    return 2;
  }
  // If the parent has already ended, our stdin is closed, which also ends this process.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  return atl::probe::serve();
}
