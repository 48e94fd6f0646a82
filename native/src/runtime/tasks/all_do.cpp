#include "atoll/runtime/all_do.hpp"

#include <atomic>
#include <exception>
#include <optional>
#include <vector>

#include "atoll/runtime/latch.hpp"
#include "scheduler/worker.hpp"

namespace atl::detail {

namespace {

using runtime::PlaceDomains;
using runtime::Worker;

struct Round {
  void (*call)(void*, const Share&);
  void* closure;
  Latch left;
  std::atomic<bool> failed{false};
  std::exception_ptr exception;
  std::optional<Barrier> barrier;

  void run(int rank, int size) {
    try {
      call(closure, {rank, size, barrier ? &*barrier : nullptr});
    } catch (...) {
      if (!failed.exchange(true, std::memory_order_relaxed)) exception = std::current_exception();
    }
    left.count_down();
  }

  // Without a stack to wait with, the program ends: the others still use this object.
  void wait() noexcept { left.wait(); }
};

struct ShareJob : Job {
  Round* round;
  int rank;
  int size;
};

void run_share(Job* job) {
  const auto& share = *static_cast<ShareJob*>(job);
  share.round->run(share.rank, share.size);
}

// Those that may run the domain's tasks now.
std::vector<int> workers_of(const Worker& worker, Word tag) {
  std::vector<int> ranks;
  while (ranks.empty()) {  // the members may be changing
    for (int rank = 0; rank < worker.team.size(); ++rank) {
      if (worker.team.domains.allows(tag, rank)) ranks.push_back(rank);
    }
  }
  return ranks;
}

}  // namespace

void all_do(Place place, bool barrier, void (*call)(void* closure, const Share& share),
            void* closure) {
  auto* worker = static_cast<Worker*>(worker_or_fault("all_do"));
  const PlaceDomains& places = worker->team.place_domains;
  const std::vector<int> ranks = workers_of(*worker, places.tag_of(place));
  const int size = static_cast<int>(ranks.size());
  Round round{call, closure, Latch(size), {}, {}, {}};
  if (barrier) round.barrier.emplace(size);
  std::vector<ShareJob> shares(ranks.size());
  int own = -1;
  {
    runtime::Team::Visit visit(worker->team);
    for (int rank = 0; rank < size; ++rank) {
      const int on = ranks[static_cast<std::size_t>(rank)];
      if (on == worker->rank && worker->on_own_thread()) {
        own = rank;
        continue;
      }
      ShareJob& share = shares[static_cast<std::size_t>(rank)];
      share.execute = run_share;
      share.context = worker->context;
      share.round = &round;
      share.rank = rank;
      share.size = size;
      visit.make_ready(word_of(&share, WordKind::job, places.tag_of(on_worker(on))));
    }
  }
  if (own >= 0) {
    // The caller's own share needs no other stack, only to be bound like the others.
    const Word tag = worker->tag;
    worker->enter_domain(places.tag_of(on_worker(worker->rank)));
    round.run(own, size);
    Worker::here()->enter_domain(tag);
  }
  round.wait();
  if (round.exception) std::rethrow_exception(round.exception);
}

}  // namespace atl::detail
