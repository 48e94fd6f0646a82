#include "threads.hpp"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "clock.hpp"
#include "descriptor.hpp"
#include "protocol.hpp"

namespace atl::probe {

namespace {

constexpr std::int64_t kPatienceNs = 10'000'000'000;
constexpr std::int64_t kGraceNs = 1'000'000'000;
// Time to touch memory first, write it, run over it a few times and compare it, while others use
// most of the memory's bandwidth.
constexpr std::int64_t kNsPerByte = 10;
constexpr std::size_t kStackBytes = 1 << 20;

// Thrown in a thread that must stop because another thread failed.
struct Stopped {};

// A kernel mask of any size (cpu_set_t ends at 1024).
class Mask {
 public:
  explicit Mask(std::size_t cpus) : set_(CPU_ALLOC(cpus)), bytes_(CPU_ALLOC_SIZE(cpus)) {
    if (set_ == nullptr) throw std::bad_alloc();
    CPU_ZERO_S(bytes_, set_);
  }
  Mask(const Mask&) = delete;
  Mask& operator=(const Mask&) = delete;
  ~Mask() { CPU_FREE(set_); }
  cpu_set_t* set() { return set_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  void insert(int cpu) { CPU_SET_S(static_cast<std::size_t>(cpu), bytes_, set_); }
  bool contains(int cpu) { return CPU_ISSET_S(static_cast<std::size_t>(cpu), bytes_, set_) != 0; }

 private:
  cpu_set_t* set_;
  std::size_t bytes_;
};

class Attributes {
 public:
  explicit Attributes(int cpu) {
    Mask mask(static_cast<std::size_t>(cpu) + 1);
    mask.insert(cpu);
    pthread_attr_init(&value_);
    pthread_attr_setstacksize(&value_, kStackBytes);
    pthread_attr_setaffinity_np(&value_, mask.bytes(), mask.set());
  }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;
  ~Attributes() { pthread_attr_destroy(&value_); }
  [[nodiscard]] const pthread_attr_t* get() const { return &value_; }

 private:
  pthread_attr_t value_{};
};

std::string listed(const std::vector<int>& cpus) {
  std::string text;
  for (const int cpu : cpus) {
    if (!text.empty()) text += ',';
    text += std::to_string(cpu);
  }
  return text;
}

enum class Wait { kReady, kTimeOut };

// Waits until the descriptor is readable. Ends the process if nobody reads its answers any more,
// because the process that started it has ended.
Wait wait_for(int descriptor, std::int64_t ns) {
  const std::int64_t deadline = now_ns() + ns;
  for (;;) {
    pollfd watched[2] = {{descriptor, POLLIN, 0}, {STDOUT_FILENO, 0, 0}};
    const std::int64_t left_ms =
        std::max<std::int64_t>(0, (deadline - now_ns() + 999'999) / 1'000'000);
    const int found = poll(watched, 2, static_cast<int>(left_ms));
    if (found < 0 && errno != EINTR) {
      throw std::system_error(errno, std::generic_category(), "poll");
    }
    if ((watched[0].revents & POLLIN) != 0) return Wait::kReady;
    if (found > 0 && (watched[1].revents & POLLERR) != 0) _exit(0);
    if (found >= 0 && now_ns() >= deadline) return Wait::kTimeOut;
  }
}

[[noreturn]] void exit_stuck(const std::string& error) {
  const std::string line = refusal(Code::kCpu, error) + "\n";
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fflush(stdout);
  _exit(kExitStuck);
}

}  // namespace

void require_cpus(const std::vector<int>& cpus) {
  Mask mask(static_cast<std::size_t>(kMostCpus));
  if (sched_getaffinity(0, mask.bytes(), mask.set()) != 0) {
    throw Fault(Code::kCpu, "sched_getaffinity: " + std::generic_category().message(errno));
  }
  std::vector<int> outside;
  for (const int cpu : cpus) {
    if (!mask.contains(cpu)) outside.push_back(cpu);
  }
  if (!outside.empty()) {
    throw Fault(Code::kCpu, "CPUs " + listed(outside) +
                                " are offline, or outside this process's mask or cgroup");
  }
}

struct Team::Start {
  Team* team;
  std::size_t rank;
  const std::function<void(std::size_t)>* body;
  int ended_event;
};

Team::Team(std::vector<int> cpus, std::int64_t budget_ns, std::size_t bytes)
    : cpus_(std::move(cpus)),
      records_(cpus_.size()),
      limit_ns_(kPatienceNs + 10 * budget_ns + kNsPerByte * static_cast<std::int64_t>(bytes)) {
  require_cpus(cpus_);
}

void* Team::enter(void* start) {
  const Start given = *static_cast<Start*>(start);
  Team& team = *given.team;
  team.live(given.rank, *given.body);
  // The last thread wakes run(). After the count a thread must not touch the team.
  const std::size_t count = team.size();
  if (team.ended_.fetch_add(1, std::memory_order_acq_rel) + 1 == count) {
    eventfd_write(given.ended_event, 1);
  }
  return nullptr;
}

void Team::live(std::size_t rank, const std::function<void(std::size_t)>& body) {
  ThreadRecord& record = records_[rank];
  record.tid = static_cast<pid_t>(syscall(SYS_gettid));
  record.cpu = cpus_[rank];
  record.seen_begin = sched_getcpu();
  try {
    body(rank);
  } catch (const Stopped&) {
  } catch (...) {
    fail(std::current_exception());
  }
  record.seen_end = sched_getcpu();
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  record.involuntary += usage.ru_nivcsw;
}

void Team::fail(std::exception_ptr fault) {
  const std::lock_guard lock(mutex_);
  if (!fault_) fault_ = std::move(fault);
  stop_.store(true, std::memory_order_relaxed);
}

void Team::run(const std::function<void(std::size_t rank)>& body) {
  stop_.store(false, std::memory_order_relaxed);
  arrived_.store(0, std::memory_order_relaxed);
  ended_.store(0, std::memory_order_relaxed);
  fault_ = nullptr;
  const inspect::Descriptor ended_event(eventfd(0, EFD_CLOEXEC));
  if (!ended_event) throw std::system_error(errno, std::generic_category(), "eventfd");
  std::vector<Start> starts;
  for (std::size_t rank = 0; rank < size(); ++rank) {
    starts.push_back({this, rank, &body, ended_event.get()});
  }
  std::vector<pthread_t> threads(size());
  for (std::size_t rank = 0; rank < size(); ++rank) {
    const Attributes attributes(cpus_[rank]);
    const int error = pthread_create(&threads[rank], attributes.get(), enter, &starts[rank]);
    if (error == 0) continue;
    fail(std::make_exception_ptr(Fault(Code::kCpu, "a thread on CPU " +
                                                       std::to_string(cpus_[rank]) + ": " +
                                                       std::generic_category().message(error))));
    threads.resize(rank);
    // Threads that did not start count as ended.
    const std::size_t absent = size() - rank;
    if (ended_.fetch_add(absent, std::memory_order_acq_rel) + absent == size()) {
      eventfd_write(ended_event.get(), 1);
    }
    break;
  }
  await(ended_event.get());
  for (const pthread_t thread : threads) pthread_join(thread, nullptr);
  if (fault_) std::rethrow_exception(fault_);
}

void Team::await(int ended_event) {
  if (wait_for(ended_event, limit_ns_) == Wait::kReady) return;
  const std::string error = "CPUs " + listed(cpus_) + ": not finished within " +
                            std::to_string(limit_ns_ / 1'000'000'000) +
                            " s; one of them gives a thread too little time";
  fail(std::make_exception_ptr(Fault(Code::kCpu, error)));
  if (wait_for(ended_event, kGraceNs) == Wait::kTimeOut) exit_stuck(error);
}

void Team::barrier() {
  constexpr int kSpins = 20'000;
  const unsigned phase = phase_.load(std::memory_order_relaxed);
  // Release: all leaving threads see our writes. Acquire: the last thread resets the barrier.
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == size()) {
    arrived_.store(0, std::memory_order_relaxed);
    phase_.store(phase + 1, std::memory_order_release);
    return;
  }
  for (int spins = 1; phase_.load(std::memory_order_acquire) == phase; ++spins) {
    if (spins < kSpins) {
      check();
      relax();
    } else {
      nap();
    }
  }
}

void Team::check() const {
  if (stopped()) throw Stopped{};
}

void Team::nap() const {
  check();
  const timespec pause{.tv_sec = 0, .tv_nsec = 50'000};
  nanosleep(&pause, nullptr);
}

}  // namespace atl::probe
