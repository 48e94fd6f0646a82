#include "process.hpp"

#include <pthread.h>

#include <atomic>
#include <vector>

#include "atoll/runtime/detail/worker.hpp"
#include "profiler/recorder.hpp"

namespace atl::runtime {

namespace {

// Of the list below. Over a fork it is taken first and released last.
constinit std::mutex listing;
std::atomic<std::uint32_t> forks{0};

// Never destroyed: a destructor of a static may fork.
std::vector<std::mutex*>& held() {
  static auto* const mutexes = new std::vector<std::mutex*>;
  return *mutexes;
}

void before_fork() {
  listing.lock();
  for (std::mutex* const mutex : held()) mutex->lock();
}

void after_fork() {
  for (std::mutex* const mutex : held()) mutex->unlock();
  listing.unlock();
}

void in_child() {
  forks.fetch_add(1, std::memory_order_relaxed);
  // The child has the task's stack but no worker: calls that need one report it.
  detail::atl_rt_worker = nullptr;
  // Nor has it the pages of the worker's counters, which a section would read.
  Recorder::set_current(nullptr);
  after_fork();
}

void register_handlers() {
  [[maybe_unused]] static const int once =
      (held(), pthread_atfork(before_fork, after_fork, in_child));
}

}  // namespace

std::uint32_t forks_before() {
  register_handlers();
  return forks.load(std::memory_order_relaxed);
}

void hold_over_fork(std::mutex& mutex) {
  register_handlers();
  const std::lock_guard lock(listing);
  held().push_back(&mutex);
}

SignalsBlocked::SignalsBlocked() noexcept {
  sigset_t mask;
  sigfillset(&mask);
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGPROF, SIGABRT}) {
    sigdelset(&mask, signal);
  }
  pthread_sigmask(SIG_BLOCK, &mask, &before_);
}

SignalsBlocked::~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

}  // namespace atl::runtime
