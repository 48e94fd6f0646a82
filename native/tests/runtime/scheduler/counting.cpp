#include "counting.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>

#if defined(ATL_TEST_COUNTS)

namespace atl::test {

namespace {

// Of one thread, which alone writes them: a locked instruction would count among those of the code.
struct Counted {
  std::atomic<long> futex{0};
  std::atomic<long> membarrier{0};
  std::atomic<long> wakes{0};  // of the futex calls
};

constexpr std::size_t kMostThreads = 32768;
std::array<Counted, kMostThreads> counted;
std::atomic<std::size_t> threads{0};
thread_local Counted* mine = nullptr;

Counted& of_this_thread() {
  if (mine == nullptr) mine = &counted.at(threads.fetch_add(1, std::memory_order_relaxed));
  return *mine;
}

void add_one(std::atomic<long>& count) {
  count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

// Chains of wakes: a thread is one step further than the one that woke it last. Only while somebody
// watches.
struct Chains {
  std::mutex mutex;
  std::unordered_map<const void*, int> steps_to;  // by futex word
  int longest = 0;
};
Chains chains;
std::atomic<int> watch{0};  // the number of the one that runs, or 0
std::atomic<int> watches{0};
thread_local int step = 0;
thread_local int step_in = 0;  // which watch

void wakes_at(const void* word) {
  const int now = watch.load(std::memory_order_relaxed);
  if (now == 0) return;
  const std::lock_guard lock(chains.mutex);
  const int steps = (step_in == now ? step : 0) + 1;
  chains.steps_to[word] = steps;
  chains.longest = std::max(chains.longest, steps);
}

void woken_at(const void* word) {
  const int now = watch.load(std::memory_order_relaxed);
  if (now == 0) return;
  const std::lock_guard lock(chains.mutex);
  const auto found = chains.steps_to.find(word);
  if (found == chains.steps_to.end()) return;
  step = found->second;
  step_in = now;
}

constexpr unsigned long kTrapFlag = 0x100;
std::atomic<long> locked{0};
std::atomic<long> steps{0};
void (*look_at)(const std::uint8_t* next) = nullptr;

// Whether the instruction there locks the bus: a lock prefix, or xchg with memory.
bool locks(const std::uint8_t* at) {
  for (;; ++at) {
    switch (*at) {
      case 0xf0: return true;
      case 0x26:
      case 0x2e:
      case 0x36:
      case 0x3e:
      case 0x64:
      case 0x65:
      case 0x66:
      case 0x67:
      case 0xf2:
      case 0xf3: continue;
      default: break;
    }
    break;
  }
  if ((*at & 0xf0) == 0x40) ++at;  // REX
  return (*at == 0x86 || *at == 0x87) && at[1] >> 6 != 3;
}

void on_step(int, siginfo_t*, void* context) {
  const auto* const machine = &static_cast<ucontext_t*>(context)->uc_mcontext;
  ++steps;
  look_at(reinterpret_cast<const std::uint8_t*>(machine->gregs[REG_RIP]));
}

[[gnu::noinline]] void trap(bool on) {
  if (on) {
    asm volatile("pushfq\n\torq %0, (%%rsp)\n\tpopfq" ::"i"(kTrapFlag) : "cc", "memory");
  } else {
    asm volatile("pushfq\n\tandq %0, (%%rsp)\n\tpopfq" ::"i"(~kTrapFlag) : "cc", "memory");
  }
}

}  // namespace

Calls calls_of_all() {
  Calls sum{0, 0};
  for (std::size_t at = 0; at < threads.load(std::memory_order_relaxed); ++at) {
    sum.futex += counted[at].futex.load(std::memory_order_relaxed);
    sum.membarrier += counted[at].membarrier.load(std::memory_order_relaxed);
  }
  return sum;
}

Calls calls_of_this_thread() {
  const Counted& own = of_this_thread();
  return {own.futex.load(std::memory_order_relaxed),
          own.membarrier.load(std::memory_order_relaxed)};
}

WakeWatch::WakeWatch() : before_(of_this_thread().wakes.load(std::memory_order_relaxed)) {
  const std::lock_guard lock(chains.mutex);
  chains.steps_to.clear();
  chains.longest = 0;
  watch.store(++watches, std::memory_order_relaxed);
}
WakeWatch::~WakeWatch() { watch.store(0, std::memory_order_relaxed); }

long WakeWatch::by_this_thread() const {
  return of_this_thread().wakes.load(std::memory_order_relaxed) - before_;
}

int WakeWatch::longest_chain() const {
  const std::lock_guard lock(chains.mutex);
  return chains.longest;
}

Steps::Steps(void (*look)(const std::uint8_t* next)) {
  struct sigaction stepping{};
  stepping.sa_sigaction = on_step;
  stepping.sa_flags = SA_SIGINFO;
  sigaction(SIGTRAP, &stepping, &before_);
  look_at = look;
  steps = 0;
  trap(true);
}

long Steps::end() {
  trap(false);
  sigaction(SIGTRAP, &before_, nullptr);
  EXPECT_GT(steps, 0) << "nothing was stepped through";
  return steps;
}

LockedCount::LockedCount()
    : steps_([](const std::uint8_t* next) {
        if (locks(next)) ++locked;
      }) {
  locked = 0;
}

long LockedCount::end() {
  steps_.end();
  return locked;
}

}  // namespace atl::test

extern "C" long syscall(long number, ...) noexcept {
  va_list list;
  va_start(list, number);
  const long first = va_arg(list, long);
  const long second = va_arg(list, long);
  const long third = va_arg(list, long);
  register long fourth asm("r10") = va_arg(list, long);
  register long fifth asm("r8") = va_arg(list, long);
  register long sixth asm("r9") = va_arg(list, long);
  va_end(list);
  const auto* const word = reinterpret_cast<const void*>(first);
  const bool wakes = number == SYS_futex && (second & FUTEX_CMD_MASK) == FUTEX_WAKE;
  if (number == SYS_futex) atl::test::add_one(atl::test::of_this_thread().futex);
  if (number == SYS_membarrier) atl::test::add_one(atl::test::of_this_thread().membarrier);
  if (wakes) {
    atl::test::add_one(atl::test::of_this_thread().wakes);
    atl::test::wakes_at(word);
  }
  long result = number;
  asm volatile("syscall"
               : "+a"(result)
               : "D"(first), "S"(second), "d"(third), "r"(fourth), "r"(fifth), "r"(sixth)
               : "rcx", "r11", "memory");
  if (number == SYS_futex && !wakes) atl::test::woken_at(word);
  if (result < 0 && result > -4096) {
    errno = static_cast<int>(-result);
    return -1;
  }
  return result;
}

#endif
