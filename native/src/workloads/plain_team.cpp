#include "plain_team.hpp"

namespace atl::workloads {

PlainTeam::PlainTeam(int threads) : threads_(threads) {
  try {
    for (int other = 1; other < threads; ++other) {
      others_.emplace_back([this, other] { serve(static_cast<std::size_t>(other)); });
    }
  } catch (...) {
    stop();
    throw;
  }
}

PlainTeam::~PlainTeam() { stop(); }

std::size_t& PlainTeam::rank() {
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
  std::unique_lock lock(mutex_);
  end_.wait(lock, [this] { return busy_ == 0; });
  if (fault_) std::rethrow_exception(std::exchange(fault_, nullptr));
}

void PlainTeam::serve(std::size_t own) {
  rank() = own;
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
  if (fault && !fault_) fault_ = fault;
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
