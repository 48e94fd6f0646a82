// Loops over many items: parallel_for and parallel_reduce.
//
//   atl::parallel_for(0, n, [&](int i) { a[i] = b[i] * s + c[i]; });
//   atl::parallel_for(rows.begin(), rows.end(), [](Row& row) { row.sort(); });
//   atl::parallel_for(0, n, [&](int first, int last) { ... });   // a piece at a time
//   const double sum = atl::parallel_reduce(0, n, 0.0, [&](int i) { return a[i]; }, std::plus<>());
//
// The range is first cut into one part per worker that may run the task (all, or those of its group
// or place), and a worker that comes to help takes the part
// of its own rank if that is still free. So the same items tend to run on the same worker each
// time, close to their memory and cache. A worker processes its part piece by piece; only when its
// deque is empty, so that thieves may find no work, does it offer half of the rest to them (Tzannes
// et al., "Lazy binary-splitting", PPoPP 2010). So on a busy machine there are hardly any forks.
// Promises
//  - Each item is processed once, in order within a piece; pieces run in any order and in parallel.
//  - The grain is the minimum number of items of a piece (except the last ones). By default each
//    worker's even share of the range is 32 pieces. A loop on one worker is one piece.
//  - The loop throws the first exception of a body; workers then skip pieces that have not begun,
//    as soon as they see it.
//  - Bodies are part of the caller's task and may fork, loop, wait. Bodies that are trivially
//    copyable are copied per piece, so that the compiler can keep what they capture in registers.
//  - Throws RuntimeFault outside of a task. Empty and reversed ranges of integers: no call.
#pragma once

#include <atomic>
#include <concepts>
#include <cstdint>
#include <exception>
#include <iterator>
#include <type_traits>
#include <utility>

#include "atoll/runtime/export.hpp"
#include "atoll/runtime/fork.hpp"

namespace atl {

namespace detail {

// Integers of any kind, and iterators that can be added to.
template <class Index>
concept LoopIndex =
    (std::integral<Index> && !std::same_as<Index, bool>) || std::random_access_iterator<Index>;

// For (0, vector.size()) the type of the size.
template <class Begin, class End>
using IndexOf = std::common_type_t<Begin, End>;

template <class Index>
std::uint64_t distance(Index begin, Index end) {
  if constexpr (std::integral<Index>) {
    // Unsigned: the distance of two signed numbers need not fit.
    return begin < end ? static_cast<std::uint64_t>(end) - static_cast<std::uint64_t>(begin) : 0;
  } else {
    return begin < end ? static_cast<std::uint64_t>(end - begin) : 0;
  }
}

template <class Index>
Index advanced(Index begin, std::uint64_t by) {
  if constexpr (std::integral<Index>) {
    return static_cast<Index>(static_cast<std::uint64_t>(begin) + by);
  } else {
    return begin + static_cast<std::iter_difference_t<Index>>(by);
  }
}

// The argument of a body that takes one item.
template <class Index>
decltype(auto) item(Index index) {
  if constexpr (std::integral<Index>) {
    return index;
  } else {
    return *index;
  }
}
template <class Index>
using Item = decltype(item(std::declval<Index>()));

// The workers that may run the caller's task, and the rank of its worker among them. Both change if
// the task's group or place gets other workers meanwhile.
ATOLL_EXPORT std::uint32_t workers_of(WorkerHead* worker);
ATOLL_EXPORT std::uint32_t rank_of(WorkerHead* worker);

inline constexpr std::uint64_t kPiecesPerWorker = 32;

inline std::uint64_t default_grain(std::uint64_t items, std::uint32_t workers) {
  const std::uint64_t pieces = std::uint64_t{workers} * kPiecesPerWorker;
  return items <= pieces ? 1 : items / pieces;
}

// One loop, shared by all workers that help. `Piece` is called with (first, last), numbers from 0.
template <class Piece>
class Loop {
 public:
  Loop(std::uint64_t items, std::uint64_t grain, std::uint32_t workers, Piece& piece)
      : items_(items), grain_(grain), workers_(workers), piece_(piece) {
    const std::uint64_t most = items / grain;
    parts_ = workers < kMostParts ? workers : kMostParts;
    if (most < parts_) parts_ = most < 1 ? 1 : static_cast<std::uint32_t>(most);
    unclaimed_.store(parts_ == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << parts_) - 1,
                     std::memory_order_relaxed);
  }

  void run() { help(parts_ - 1); }

 private:
  static constexpr std::uint32_t kMostParts = 64;  // bits of a word; beyond, workers share parts

  // Takes parts until none is left. `more` other workers may still help; each brings half of the
  // rest, so that helpers wake each other.
  void help(std::uint32_t more) {
    // Relaxed: a worker that sees it claimed reads nothing else.
    if (unclaimed_.load(std::memory_order_relaxed) == 0) return;
    if (more == 0) return take_parts();
    const std::uint32_t theirs = (more - 1) / 2;
    auto helper = fork([this, theirs] { help(theirs); });
    if (more > 1) {
      auto second = fork([this, rest = more - 1 - theirs] { help(rest - 1); });
      take_parts();
      second.join();
    } else {
      take_parts();
    }
    helper.join();
  }

  void take_parts() {
    const std::uint32_t rank = rank_of(this_worker());
    // Part p is for the ranks r with r * parts / workers == p, and the next ones come after it.
    const auto own = static_cast<std::uint32_t>(std::uint64_t{rank} * parts_ / workers_) % parts_;
    for (std::uint32_t step = 0; step < parts_; ++step) {
      const std::uint32_t part = own + step < parts_ ? own + step : own + step - parts_;
      const std::uint64_t bit = std::uint64_t{1} << part;
      if ((unclaimed_.load(std::memory_order_relaxed) & bit) == 0) continue;
      if ((unclaimed_.fetch_and(~bit, std::memory_order_relaxed) & bit) == 0) continue;
      split(begin_of(part), begin_of(part + 1));
    }
  }

  std::uint64_t begin_of(std::uint64_t part) const {
    return items_ / parts_ * part + (part < items_ % parts_ ? part : items_ % parts_);
  }

  void split(std::uint64_t first, std::uint64_t last) {
    while ((last - first) / 2 >= grain_) {
      if (this_worker()->deque.looks_empty()) {
        const std::uint64_t middle = first + (last - first) / 2;
        auto right = fork([this, middle, last] { split(middle, last); });
        split(first, middle);
        return right.join();
      }
      run_piece(first, first + grain_);
      first += grain_;
    }
    run_piece(first, last);
  }

  void run_piece(std::uint64_t first, std::uint64_t last) {
    if (failed_.load(std::memory_order_relaxed)) [[unlikely]]
      return;
    try {
      piece_(first, last);
    } catch (...) {
      failed_.store(true, std::memory_order_relaxed);
      throw;
    }
  }

  const std::uint64_t items_;
  const std::uint64_t grain_;
  const std::uint32_t workers_;
  std::uint32_t parts_;
  Piece& piece_;
  std::atomic<bool> failed_{false};
  alignas(128) std::atomic<std::uint64_t> unclaimed_;  // a bit per part; hot at the beginning only
};

template <class Piece>
void run_loop(const char* call, std::uint64_t items, std::uint64_t grain, Piece&& piece) {
  WorkerHead* const worker = worker_or_fault(call);
  if (items == 0) return;
  const std::uint32_t workers = workers_of(worker);
  if (grain == 0) grain = default_grain(items, workers);
  if (workers == 1 || items / 2 < grain) return piece(std::uint64_t{0}, items);
  Loop<std::remove_reference_t<Piece>>(items, grain, workers, piece).run();
}

// A copy per piece where a copy makes no difference to the body.
template <class F>
using PerPiece = std::conditional_t<std::is_trivially_copyable_v<F> && sizeof(F) <= 64, F, F&>;

}  // namespace detail

// Calls body(i) for each integer or body(*i) for each iterator of [begin, end); or, if the body
// takes two arguments, body(first, last) for each piece. `grain` 0: the default.
template <class Begin, class End, class Body, detail::LoopIndex Index = detail::IndexOf<Begin, End>>
  requires std::invocable<Body&, detail::Item<Index>> || std::invocable<Body&, Index, Index>
void parallel_for(Begin begin, End end, Body&& body, std::uint64_t grain = 0) {
  const auto from = static_cast<Index>(begin);
  const std::uint64_t items = detail::distance(from, static_cast<Index>(end));
  detail::run_loop("parallel_for", items, grain,
                   [from, &body](std::uint64_t first, std::uint64_t last) {
                     detail::PerPiece<std::remove_reference_t<Body>> mine = body;
                     Index at = detail::advanced(from, first);
                     const Index stop = detail::advanced(from, last);
                     if constexpr (std::invocable<Body&, Index, Index>) {
                       mine(at, stop);
                     } else {
                       for (; at < stop; ++at) mine(detail::item(at));
                     }
                   });
}

namespace detail {

template <class Value, class Map, class Combine, class Index>
struct Reduction {
  const Index begin;
  const std::uint64_t grain;
  const Value& identity;
  Map& map;
  Combine& combine;
  std::atomic<bool> failed{false};

  Value part(std::uint64_t first, std::uint64_t last) {
    if (last - first <= grain) return piece(first, last);
    // A multiple of the grain, so that all pieces but the last are full.
    // Not (items + grain - 1) / grain: that sum need not fit.
    const std::uint64_t pieces = (last - first - 1) / grain + 1;
    const std::uint64_t middle = first + pieces / 2 * grain;
    auto right = fork([this, middle, last] { return part(middle, last); });
    Value left = part(first, middle);
    return combine(std::move(left), right.join());
  }

  Value piece(std::uint64_t first, std::uint64_t last) {
    if (failed.load(std::memory_order_relaxed)) [[unlikely]]
      return identity;
    try {
      PerPiece<Map> mine = map;
      PerPiece<Combine> join = combine;
      Index at = advanced(begin, first);
      const Index stop = advanced(begin, last);
      if constexpr (std::invocable<Map&, Index, Index>) {
        return mine(at, stop);
      } else {
        Value so_far = identity;
        for (; at < stop; ++at) so_far = join(std::move(so_far), mine(item(at)));
        return so_far;
      }
    } catch (...) {
      failed.store(true, std::memory_order_relaxed);
      throw;
    }
  }
};

}  // namespace detail

// combine(... combine(map(begin), map(begin + 1)) ..., map(end - 1)), with brackets elsewhere:
// `combine` has to be associative but need not commute; its left argument is always of items before
// the right one's. Or map(first, last) gives the value of a whole piece.
//
// Where the brackets are depends on the range, the grain and, without a grain, the number of
// workers, but not on scheduling. So floating-point sums are bit for bit the same in each run and,
// with a grain, on each machine. Several workers may call `combine` and `map` at once.
template <class Begin, class End, std::copyable Value, class Map, class Combine,
          detail::LoopIndex Index = detail::IndexOf<Begin, End>>
  requires std::invocable<Map&, detail::Item<Index>> || std::invocable<Map&, Index, Index>
[[nodiscard]] Value parallel_reduce(Begin begin, End end, Value identity, Map&& map,
                                    Combine&& combine, std::uint64_t grain = 0) {
  detail::WorkerHead* const worker = detail::worker_or_fault("parallel_reduce");
  const auto from = static_cast<Index>(begin);
  const std::uint64_t items = detail::distance(from, static_cast<Index>(end));
  if (items == 0) return identity;
  if (grain == 0) grain = detail::default_grain(items, detail::workers_of(worker));
  detail::Reduction<Value, std::remove_reference_t<Map>, std::remove_reference_t<Combine>, Index>
      reduction{from, grain, identity, map, combine};
  return reduction.part(0, items);
}

}  // namespace atl
