#include "child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <sstream>

#include "atoll/topology.hpp"

namespace atl::topology {
namespace {

// A machine of 256 PUs takes 10 ms, one of 16,384 under 2 s.
constexpr rlim_t cpu_seconds = 5;
constexpr std::chrono::seconds wall_limit{30};
constexpr rlim_t memory_bytes = rlim_t{1} << 30;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool limit_memory = false;  // shadow memory is terabytes of address space
#else
constexpr bool limit_memory = true;
#endif

// The pipe carries an optional `accepted`, then machine, fault or own_fault, then the text.
constexpr char accepted = 'A';
constexpr char machine = 'M';
constexpr char fault = 'F';
constexpr char own_fault = 'O';

class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { reset(); }
  [[nodiscard]] int get() const { return number_; }
  void reset(int number = -1) {
    if (number_ >= 0) close(number_);
    number_ = number;
  }

 private:
  int number_;
};

[[noreturn]] void no_resources(const char* what) {
  throw Fault(std::string("cannot read a topology: ") + what + ": " + std::strerror(errno));
}

void write_all(int pipe, const char* bytes, std::size_t count) {
  while (count > 0) {
    const ssize_t written = write(pipe, bytes, count);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) _exit(1);  // the parent has ended
    bytes += written;
    count -= static_cast<std::size_t>(written);
  }
}

void set_limit(int resource, rlim_t value) {
  rlimit limit{};
  if (getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0) return;
  limit.rlim_cur = std::min(limit.rlim_max, value);
  setrlimit(static_cast<__rlimit_resource>(resource), &limit);
}

rlim_t address_space_now() {
  std::ifstream statm("/proc/self/statm");
  rlim_t pages = 0;
  statm >> pages;
  return pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
}

[[noreturn]] void run_child(int pipe, int output, pid_t parent, bool foreign,
                            const std::function<std::string(const Progress&)>& work) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  // The caller's handlers must not run here. Ctrl-C ends the child.
  for (const int number :
       {SIGINT, SIGTERM, SIGHUP, SIGALRM, SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGXCPU, SIGPIPE}) {
    std::signal(number, SIG_DFL);
  }
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  set_limit(RLIMIT_CORE, 0);
  if (foreign) {
    set_limit(RLIMIT_CPU, cpu_seconds);
    const rlim_t now = address_space_now();  // 0 without /proc
    if (limit_memory && now > 0) set_limit(RLIMIT_AS, now + memory_bytes);
  }
  char verdict = own_fault;
  std::string text;
  try {
    text = work(Progress(pipe));
    verdict = machine;
  } catch (const OwnFault& caught) {
    text = caught.what();
  } catch (const Fault& caught) {
    verdict = fault;
    text = caught.what();
  } catch (const std::exception& caught) {
    text = caught.what();
  }
  write_all(pipe, &verdict, 1);
  write_all(pipe, text.data(), text.size());
  // Runs no destructors or exit handlers: they belong to the parent.
  _exit(0);
}

enum class End { finished, too_long };

End read_all(int pipe, std::string& text) {
  const auto deadline = std::chrono::steady_clock::now() + wall_limit;
  std::array<char, 65536> buffer{};
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return End::too_long;
    pollfd waiting{.fd = pipe, .events = POLLIN, .revents = 0};
    const int ready = poll(&waiting, 1, static_cast<int>(left.count()));
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) return End::too_long;
    const ssize_t count = read(pipe, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return End::finished;
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

std::string read_output(int output) {
  std::string text(4096, '\0');
  const ssize_t count = pread(output, text.data(), text.size(), 0);
  text.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  return text;
}

std::string how_it_ended(int status, End end) {
  if (end == End::too_long) return "took longer than 30 s";
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU) return "took over 5 s of CPU time";
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGINT) return "was interrupted";
  if (WIFSIGNALED(status)) return "gave up (signal " + std::to_string(WTERMSIG(status)) + ")";
  return "gave up (status " + std::to_string(WIFEXITED(status) ? WEXITSTATUS(status) : 0) + ")";
}

}  // namespace

void Progress::input_accepted() const { write_all(pipe_, &accepted, 1); }

std::string Progress::printed() { return read_output(STDERR_FILENO); }

std::string first_line(const std::string& printed) {
  std::istringstream lines(printed);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find_first_not_of("* \t\r");
    if (first == std::string::npos) continue;
    const std::size_t last = line.find_last_not_of("* \t\r");
    return line.substr(first, std::min<std::size_t>(last - first + 1, 200));
  }
  return "";
}

std::string in_child(const std::string& subject, bool foreign,
                     const std::function<std::string(const Progress&)>& work) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) no_resources("pipe");
  Descriptor from_child(ends[0]);
  Descriptor to_parent(ends[1]);
  Descriptor output(memfd_create("atoll-hwloc", MFD_CLOEXEC));
  if (output.get() < 0) no_resources("memfd_create");
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) no_resources("fork");
  if (child == 0) run_child(to_parent.get(), output.get(), parent, foreign, work);
  to_parent.reset();

  std::string text;
  const End end = read_all(from_child.get(), text);
  if (end == End::too_long) kill(child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }

  const bool was_accepted = !text.empty() && text.front() == accepted;
  if (was_accepted) text.erase(0, 1);
  const char verdict = text.empty() ? '\0' : text.front();
  // A child that was killed while writing has sent only part of its text.
  const bool complete = status == 0;
  if (complete && verdict == machine) return text.substr(1);
  if (complete && verdict == fault) throw Fault(text.substr(1));
  if (complete && verdict == own_fault)
    throw OwnFault(subject + ": internal error (a bug in Atoll): " + text.substr(1));
  const std::string said = first_line(read_output(output.get()));
  const std::string tail = said.empty() ? "" : ": " + said;
  if (was_accepted) {
    throw OwnFault(subject + ": internal error (a bug in Atoll): reading " +
                   how_it_ended(status, end) + tail);
  }
  throw Fault(subject + ": hwloc " + how_it_ended(status, end) + " reading it" + tail);
}

}  // namespace atl::topology
