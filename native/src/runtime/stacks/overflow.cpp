#include "overflow.hpp"

#include <pthread.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "atoll/runtime/places.hpp"
#include "stack_chunk.hpp"

namespace atl::runtime {

namespace {

const Fiber* (*running_fiber)() noexcept;
struct sigaction previous_segv;
struct sigaction previous_bus;

// Text for write(2): no allocation, no locale.
class Line {
 public:
  Line& operator<<(std::string_view text) {
    const std::size_t room = std::min(text.size(), text_.size() - used_);
    std::memcpy(text_.data() + used_, text.data(), room);
    used_ += room;
    return *this;
  }
  Line& number(std::uint64_t value, unsigned base) {
    std::array<char, 20> digits;
    std::size_t at = digits.size();
    do {
      digits[--at] = "0123456789abcdef"[value % base];
      value /= base;
    } while (value != 0);
    return *this << std::string_view(digits.data() + at, digits.size() - at);
  }
  void print() const {
    // A failure here has no remedy; the signal follows anyway.
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text_.data(), used_);
  }

 private:
  std::array<char, 400> text_;
  std::size_t used_ = 0;
};

const std::byte* stack_pointer(const void* signal_context) {
  const auto* context = static_cast<const ucontext_t*>(signal_context);
#if defined(__x86_64__)
  return reinterpret_cast<const std::byte*>(context->uc_mcontext.gregs[REG_RSP]);
#elif defined(__aarch64__)
  return reinterpret_cast<const std::byte*>(context->uc_mcontext.sp);
#else
  (void)context;
  return nullptr;  // unknown: treated as an overflow
#endif
}

// Whether the running task's stack was too small. Its own stack is above the guard that was hit,
// unless a large frame skipped that guard; then sp has left the stack.
bool is_overflow(const GuardHit& hit, const std::byte* sp) {
  if (sp == nullptr || (sp >= hit.low && sp < hit.high + hit.stack_bytes)) return true;
  const Fiber* const running = running_fiber();
  return running != nullptr && (sp < running->low || sp > running->top);
}

void explain(const GuardHit& hit, const void* address, const void* signal_context) {
  const bool overflow = is_overflow(hit, stack_pointer(signal_context));
  Line line;
  if (overflow) {
    line << "atoll: task stack overflow: a task needs more than the ";
    line.number(hit.stack_bytes >> 10, 10) << " KiB of its stack (at 0x";
    line.number(reinterpret_cast<std::uintptr_t>(hit.high), 16)
        << "); set a bigger StackOptions.bytes, or move large locals and deep recursion to the "
           "heap\n";
  } else {
    line << "atoll: something wrote or read past the top of a task's stack (guard at 0x";
    line.number(reinterpret_cast<std::uintptr_t>(address), 16)
        << "); a pointer is wrong, the stack is large enough\n";
  }
  line.print();
}

void pass_on(int number, siginfo_t* info, void* context) {
  const struct sigaction& previous = number == SIGSEGV ? previous_segv : previous_bus;
  if ((previous.sa_flags & SA_SIGINFO) == 0 &&
      (previous.sa_handler == SIG_DFL || previous.sa_handler == SIG_IGN)) {
    sigaction(number, &previous, nullptr);
    // A fault happens again when this returns; a signal from kill(2) must be sent again.
    if (info->si_code <= 0) raise(number);
    return;
  }
  sigset_t before;
  pthread_sigmask(SIG_BLOCK, &previous.sa_mask, &before);
  if ((previous.sa_flags & SA_SIGINFO) != 0) {
    previous.sa_sigaction(number, info, context);
  } else {
    previous.sa_handler(number);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void handle(int number, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  // si_code above 0: the kernel confirms that si_addr is the address of a fault.
  const auto hit = info->si_code > 0 ? find_guard(info->si_addr) : std::nullopt;
  if (hit) {
    explain(*hit, info->si_addr, context);
    // The access faults again when this returns, so a core dump shows where.
    std::signal(number, SIG_DFL);
  } else {
    pass_on(number, info, context);
  }
  errno = saved_errno;
}

void install(int number, struct sigaction& previous) {
  struct sigaction action{};
  action.sa_sigaction = &handle;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  // Read first: a fault may occur as soon as the handler is installed.
  if (sigaction(number, nullptr, &previous) != 0 || sigaction(number, &action, nullptr) != 0) {
    throw RuntimeFault("the handler of stack overflows: sigaction: " +
                       std::generic_category().message(errno));
  }
}

}  // namespace

void install_overflow_handler(const Fiber* (*running)() noexcept) {
  static std::once_flag once;
  std::call_once(once, [running] {
    running_fiber = running;
    install(SIGSEGV, previous_segv);
    install(SIGBUS, previous_bus);
  });
}

AlternateStack::AlternateStack() {
  // The kernel's frame contains all vector registers (11 KiB with AMX); the rest is for previous
  // handlers, which may print a stack trace.
  constexpr std::size_t kHandlerBytes = std::size_t{64} << 10;
  const long frame = sysconf(_SC_MINSIGSTKSZ);
  bytes_ = kHandlerBytes + (frame > 0 ? static_cast<std::size_t>(frame) : 0);
  bytes_ = (bytes_ + page_bytes() - 1) / page_bytes() * page_bytes();
  memory_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  stack_t stack{};
  stack.ss_sp = memory_;
  stack.ss_size = bytes_;
  if (memory_ == MAP_FAILED || sigaltstack(&stack, &previous_) != 0) {
    const int why = errno;
    if (memory_ != MAP_FAILED) munmap(memory_, bytes_);
    throw RuntimeFault("an alternate signal stack: " + std::generic_category().message(why));
  }
}

AlternateStack::~AlternateStack() {
  sigaltstack(&previous_, nullptr);
  munmap(memory_, bytes_);
}

namespace {

// Of the calling thread. Readable until it ends: no destructor ends it.
enum class Known : std::uint8_t { no, yes, gone };
constinit thread_local Known known = Known::no;

struct OwnStack : AlternateStack {
  // Destructors of thread-locals that were made before this one may ask again.
  ~OwnStack() { known = Known::gone; }
};

}  // namespace

bool has_alternate_stack() noexcept {
  if (known != Known::no) return known == Known::yes;
  stack_t now{};
  sigaltstack(nullptr, &now);
  if ((now.ss_flags & SS_DISABLE) != 0) {
    thread_local std::optional<OwnStack> own;
    try {
      own.emplace();
    } catch (const RuntimeFault&) {
      return false;
    }
  }
  known = Known::yes;
  return true;
}

}  // namespace atl::runtime
