// Loops over many items: parallel_for and parallel_reduce.
//
//   atl::parallel_for(0, n, [&](int i) { a[i] = b[i] * s + c[i]; });
//   atl::parallel_for(rows.begin(), rows.end(), [](Row& row) { row.sort(); });
//   atl::parallel_for(0, n, [&](int first, int last) { ... });   // a piece at a time
//   const double sum = atl::parallel_reduce(0, n, 0.0, [&](int i) { return a[i]; }, std::plus<>());
//
// The range is first cut into one part per worker that may run the task (all, or those of its group
// or place), and a worker that comes to help takes the part of its own rank if that is still free.
// So the same items tend to run on the same worker each time, close to their memory and cache. A
// worker processes its part piece by piece; only when its deque is empty, so that thieves may find
// no work, does it offer half of the rest to them (Tzannes et al., "Lazy binary-splitting", PPoPP
// 2010). So on a busy machine there are hardly any forks.
// Promises
//  - Each item is processed once, in order within a piece; pieces run in any order and in parallel.
//  - The grain is the minimum number of items of a piece (except the last ones). By default each
//    worker's even share of the range is 32 pieces.
//  - The loop throws the first exception of a body. Then, and when the task is asked to stop, it
//    leaves out pieces that have not begun, and ends one with single items after at most 1,024
//    more. A loop that was asked to stop and has left items out throws Stopped (stoppable.hpp). An
//    exception asks the bodies that run to stop: nested loops end early.
//  - Bodies are part of the caller's task and may fork, loop, wait. Bodies that are trivially
//    copyable are copied per piece, so that the compiler can keep what they capture in registers.
//  - Throws RuntimeFault outside of a task and for a grain below 0. Empty and reversed ranges of
//    integers: no call.
#pragma once

#include <atomic>
#include <concepts>
#include <cstdint>
#include <exception>
#include <iterator>
#include <optional>
#include <type_traits>
#include <utility>

#include "atoll/runtime/export.hpp"
#include "atoll/runtime/fork.hpp"
#include "atoll/runtime/stoppable.hpp"

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

[[noreturn]] ATOLL_EXPORT void fault_negative_grain(long long grain);

// The least number of items of a piece; 0: the default.
class Grain {
 public:
  template <std::integral I>
  Grain(I given) : items_(static_cast<std::uint64_t>(given)) {  // implicit: users pass a number
    if constexpr (std::is_signed_v<I>) {
      if (given < 0) fault_negative_grain(given);
    }
  }
  std::uint64_t of(std::uint64_t items, std::uint32_t workers) const {
    if (items_ != 0) return items_;
    const std::uint64_t pieces = std::uint64_t{workers} * kPiecesPerWorker;
    return items <= pieces ? 1 : items / pieces;
  }

 private:
  std::uint64_t items_;
};

// Runs `work` with the context of its pieces, and throws the first exception.
template <class Work>
void run_as_siblings(SiblingContext& context, Work&& work) {
  TaskContext* const outer = this_worker()->context;
  this_worker()->context = &context;
  try {
    work();
  } catch (...) {
    context.fail(std::current_exception());
  }
  this_worker()->context = outer;
  if (context.failed()) [[unlikely]]
    context.rethrow();
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

  void run() {
    run_as_siblings(context_, [this] { help(parts_ - 1); });
  }

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
    while ((last - first) / 2 >= grain_ && !context_.failed()) {
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

  // Throws nothing: the first exception is not always the one that a join throws first.
  void run_piece(std::uint64_t first, std::uint64_t last) {
    if (context_.failed()) [[unlikely]]
      return;
    try {
      between_pieces();
      piece_(first, last);
    } catch (...) {
      context_.fail(std::current_exception());
    }
  }

  SiblingContext context_{this_worker()->context};
  const std::uint64_t items_;
  const std::uint64_t grain_;
  const std::uint32_t workers_;
  std::uint32_t parts_;
  Piece& piece_;
  alignas(128) std::atomic<std::uint64_t> unclaimed_;  // a bit per part; hot at the beginning only
};

template <class Piece>
void run_loop(const char* call, std::uint64_t items, Grain given, Piece&& piece) {
  WorkerHead* const worker = worker_or_fault(call);
  if (items == 0) return;
  const std::uint32_t workers = workers_of(worker);
  const std::uint64_t grain = given.of(items, workers);
  if (items / 2 < grain) {
    between_pieces();
    return piece(std::uint64_t{0}, items);
  }
  Loop<std::remove_reference_t<Piece>>(items, grain, workers, piece).run();
}

// A copy per piece where a copy makes no difference to the body.
template <class F>
using PerPiece = std::conditional_t<std::is_trivially_copyable_v<F> && sizeof(F) <= 64, F, F&>;

// Calls `each(index)` for the items of a piece, and looks between them now and then: long pieces of
// short bodies need it, and the compiler still gets a plain inner loop.
template <class Index, class Each>
void for_items(Index begin, std::uint64_t first, std::uint64_t last, Each&& each) {
  constexpr std::uint64_t kStrip = 1024;
  for (;;) {
    const std::uint64_t until = last - first > kStrip ? first + kStrip : last;
    const Index stop = advanced(begin, until);
    for (Index at = advanced(begin, first); at < stop; ++at) each(at);
    if (until == last) return;
    first = until;
    between_pieces();
  }
}

template <class Index, class Body>
void run_body(Index from, std::uint64_t first, std::uint64_t last, Body& body) {
  PerPiece<Body> mine = body;
  if constexpr (std::invocable<Body&, Index, Index>) {
    mine(advanced(from, first), advanced(from, last));
  } else {
    for_items(from, first, last, [&mine](Index at) { mine(item(at)); });
  }
}

}  // namespace detail

// Calls body(i) for each integer or body(*i) for each iterator of [begin, end); or, if the body
// takes two arguments, body(first, last) for each piece. `grain` 0: the default.
template <class Begin, class End, class Body, detail::LoopIndex Index = detail::IndexOf<Begin, End>>
  requires std::invocable<Body&, detail::Item<Index>> || std::invocable<Body&, Index, Index>
void parallel_for(Begin begin, End end, Body&& body, detail::Grain grain = 0) {
  const auto from = static_cast<Index>(begin);
  const std::uint64_t items = detail::distance(from, static_cast<Index>(end));
  detail::run_loop("parallel_for", items, grain,
                   [from, &body](std::uint64_t first, std::uint64_t last) {
                     detail::run_body(from, first, last, body);
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
  SiblingContext context{this_worker()->context};

  Value run(std::uint64_t items) {
    std::optional<Value> all;
    run_as_siblings(context, [&] { all.emplace(part(0, items)); });
    return std::move(*all);
  }

  Value part(std::uint64_t first, std::uint64_t last) {
    if (last - first <= grain || context.failed()) return piece(first, last);
    // A multiple of the grain, so that all pieces but the last are full.
    // Not (items + grain - 1) / grain: that sum need not fit.
    const std::uint64_t pieces = (last - first - 1) / grain + 1;
    const std::uint64_t middle = first + pieces / 2 * grain;
    auto right = fork([this, middle, last] { return part(middle, last); });
    Value left = part(first, middle);
    return combine(std::move(left), right.join());
  }

  Value piece(std::uint64_t first, std::uint64_t last) {
    if (context.failed()) [[unlikely]]
      return identity;
    try {
      between_pieces();
      PerPiece<Map> mine = map;
      PerPiece<Combine> join = combine;
      if constexpr (std::invocable<Map&, Index, Index>) {
        return mine(advanced(begin, first), advanced(begin, last));
      } else {
        Value so_far = identity;
        for_items(begin, first, last,
                  [&](Index at) { so_far = join(std::move(so_far), mine(item(at))); });
        return so_far;
      }
    } catch (...) {
      context.fail(std::current_exception());
      return identity;
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
                                    Combine&& combine, detail::Grain grain = 0) {
  detail::WorkerHead* const worker = detail::worker_or_fault("parallel_reduce");
  const auto from = static_cast<Index>(begin);
  const std::uint64_t items = detail::distance(from, static_cast<Index>(end));
  if (items == 0) return identity;
  detail::Reduction<Value, std::remove_reference_t<Map>, std::remove_reference_t<Combine>, Index>
      reduction{from, grain.of(items, detail::workers_of(worker)), identity, map, combine};
  return reduction.run(items);
}

}  // namespace atl
