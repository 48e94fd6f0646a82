#include "plain_team.hpp"

#include <pthread.h>
#include <sched.h>

#include <string>
#include <system_error>

namespace atl::workloads {
namespace {

void bind(pthread_t thread, int cpu) {
  const std::size_t bytes = CPU_ALLOC_SIZE(cpu + 1);
  std::vector<std::byte> room(bytes);  // zeros: an empty set
  auto* const set = reinterpret_cast<cpu_set_t*>(room.data());
  CPU_SET_S(static_cast<std::size_t>(cpu), bytes, set);
  if (const int fault = pthread_setaffinity_np(thread, bytes, set); fault != 0) {
    throw std::system_error(fault, std::generic_category(),
                            "cannot bind a thread to CPU " + std::to_string(cpu));
  }
}

}  // namespace

PlainTeam::PlainTeam(int threads, std::span<const int> cpus) : threads_(threads) {
  try {
    for (int other = 1; other < threads; ++other) {
      others_.emplace_back([this, other] { serve(static_cast<std::size_t>(other)); });
    }
    for (std::size_t own = 0; own < static_cast<std::size_t>(threads) && !cpus.empty(); ++own) {
      const pthread_t thread = own == 0 ? pthread_self() : others_[own - 1].native_handle();
      bind(thread, cpus[own % cpus.size()]);
    }
  } catch (...) {
    stop();
    throw;
  }
}

PlainTeam::~PlainTeam() { stop(); }

std::size_t& PlainTeam::own_rank() {
  thread_local std::size_t own = 0;
  return own;
}

void PlainTeam::each(const std::function<void(std::size_t)>& work) {
  {
    const std::lock_guard lock(mutex_);
    work_ = &work;
    busy_ = threads_;
    fault_ = nullptr;
    ++round_;
  }
  begin_.notify_all();
  work_as(0);
  {
    std::unique_lock lock(mutex_);
    end_.wait(lock, [this] { return busy_ == 0; });
    if (fault_) std::rethrow_exception(std::exchange(fault_, nullptr));
  }
  loop_ended();
}

void PlainTeam::serve(std::size_t own) {
  own_rank() = own;
  for (std::uint64_t seen = 0;;) {
    {
      std::unique_lock lock(mutex_);
      begin_.wait(lock, [&] { return stopped_ || round_ != seen; });
      if (stopped_) return;
      seen = round_;
    }
    work_as(own);
  }
}

void PlainTeam::work_as(std::size_t own) {
  std::exception_ptr fault;
  try {
    (*work_)(own);
  } catch (...) {
    fault = std::current_exception();
  }
  const std::lock_guard lock(mutex_);
  if (fault && !fault_) fault_ = std::move(fault);  // so the caller alone ends it
  if (--busy_ == 0) end_.notify_one();
}

void PlainTeam::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  begin_.notify_all();
  for (std::thread& other : others_) other.join();
}

}  // namespace atl::workloads
