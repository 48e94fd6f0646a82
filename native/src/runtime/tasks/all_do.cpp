#include "atoll/runtime/all_do.hpp"

#include <atomic>
#include <exception>
#include <vector>

#include "atoll/runtime/latch.hpp"
#include "scheduler/worker.hpp"

namespace atl::detail {

namespace {

using runtime::Worker;

struct Round {
  void (*call)(void*, int);
  void* closure;
  Latch left;
  std::atomic<bool> failed{false};
  std::exception_ptr exception;

  void run(int rank) {
    try {
      call(closure, rank);
    } catch (...) {
      fail();
    }
    left.count_down();
  }

  void fail() {
    if (!failed.exchange(true, std::memory_order_relaxed)) exception = std::current_exception();
  }

  // Without a stack to wait with, the program ends: the others still use this object.
  void wait() noexcept { left.wait(); }
};

struct Share : Job {
  Round* round;
};

void run_share(Job* job) {
  // Bound to this worker, so its rank identifies the share.
  static_cast<Share*>(job)->round->run(Worker::here()->rank);
}

}  // namespace

void all_do(void (*call)(void* closure, int rank), void* closure) {
  auto* worker = static_cast<Worker*>(worker_or_fault("all_do"));
  const int size = worker->team.size();
  Round round{call, closure, Latch(size), {}, {}};
  std::vector<Share> shares(static_cast<std::size_t>(size));
  const int own = worker->rank;
  for (int rank = 0; rank < size; ++rank) {
    if (rank == own) continue;
    Share& share = shares[static_cast<std::size_t>(rank)];
    share.execute = run_share;
    share.context = worker->context;
    share.round = &round;
    worker->team.inject(
        word_of(&share, WordKind::job, worker->team.place_domains.tag_of(on_worker(rank))));
  }
  // The caller's own share needs no other stack, only to be bound like the others.
  const Word tag = worker->tag;
  worker->enter_domain(worker->team.place_domains.tag_of(on_worker(own)));
  round.run(own);
  Worker::here()->enter_domain(tag);
  round.wait();
  if (round.exception) std::rethrow_exception(round.exception);
}

}  // namespace atl::detail
