// More parallel algorithms: invoke, scan, sort. Loops are in parallel.hpp.
//
//   atl::parallel_invoke([&] { build(left); }, [&] { build(right); });
//   const long rows = atl::parallel_exclusive_scan(sizes.begin(), sizes.end(), begins.begin(), 0L);
//   atl::parallel_sort(keys.begin(), keys.end(), std::greater<>());
//
// Promises
//  - They are part of the caller's task. Several workers call the functions that they get at once.
//  - They throw the first exception of such a function. It stops the rest, as in a loop; and when
//    the task is asked to stop they throw Stopped (stoppable.hpp).
//  - Throw RuntimeFault outside of a task.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "atoll/runtime/parallel.hpp"

namespace atl {

namespace detail {

template <class Last>
void invoke_guarded(SiblingContext& siblings, Last& last) {
  try {
    if (siblings.failed()) return;
    between_pieces();
    last();
  } catch (...) {
    siblings.fail(std::current_exception());
  }
}

template <class First, class... Rest>
  requires(sizeof...(Rest) > 0)
void invoke_guarded(SiblingContext& siblings, First& first, Rest&... rest) {
  auto others = fork([&] { invoke_guarded(siblings, rest...); });
  invoke_guarded(siblings, first);
  others.join();
}

}  // namespace detail

// Calls all functions, maybe at once, and waits for them. Leaves out those that have not begun when
// another one throws or the task is asked to stop.
template <std::invocable... F>
  requires(sizeof...(F) > 0)
void parallel_invoke(F&&... functions) {
  detail::SiblingContext siblings(detail::worker_or_fault("parallel_invoke")->context);
  detail::run_as_siblings(siblings, [&] { detail::invoke_guarded(siblings, functions...); });
}

namespace detail {

// First the sum of each block, then the blocks' beginnings, then each block again: 2 n calls of
// `combine` (Blelloch, "Prefix sums and their applications", 1990, section 1.2).
template <bool kInclusive, class In, class Out, class Value, class Combine>
Value scan(In begin, In end, Out out, Value init, Combine& combine, Grain grain) {
  constexpr std::uint64_t kLeast = 1024;  // items of a block: fewer cost more than they bring
  WorkerHead* const worker =
      worker_or_fault(kInclusive ? "parallel_inclusive_scan" : "parallel_exclusive_scan");
  const std::uint64_t items = detail::distance(begin, end);
  const std::uint64_t block = std::max(kLeast, grain.of(items, workers_of(worker)));
  const std::uint64_t blocks = items == 0 ? 0 : (items - 1) / block + 1;
  const auto scan_block = [&](std::uint64_t at, Value so_far) {
    Out to = advanced(out, at * block);
    for_items(begin, at * block, std::min(items, (at + 1) * block), [&](In from) {
      if constexpr (kInclusive) {
        so_far = combine(std::move(so_far), *from);
        *to = so_far;
      } else {
        Value next = combine(so_far, *from);  // before the write: `out` may be `begin`
        *to = std::exchange(so_far, std::move(next));
      }
      ++to;
    });
    return so_far;
  };
  if (blocks == 0) return init;
  if (blocks == 1) {
    between_pieces();
    return scan_block(0, std::move(init));
  }

  std::vector<std::optional<Value>> before(blocks);  // first each block's sum
  const auto sum_block = [&](std::uint64_t at) {
    Value sum(*advanced(begin, at * block));
    for_items(begin, at * block + 1, std::min(items, (at + 1) * block),
              [&](In from) { sum = combine(std::move(sum), *from); });
    before[at].emplace(std::move(sum));
  };
  parallel_for(std::uint64_t{0}, blocks, sum_block, 1);
  for (std::optional<Value>& sum : before) {
    Value next = combine(init, std::move(*sum));
    sum.emplace(std::exchange(init, std::move(next)));
  }
  parallel_for(
      std::uint64_t{0}, blocks, [&](std::uint64_t at) { scan_block(at, std::move(*before[at])); },
      1);
  return init;
}

}  // namespace detail

// out[i] = init + x[0] + ... + x[i - 1] with `combine` for +; returns the sum of all. `combine` has
// to be associative but need not commute. `out` may be `begin`; else the two must not overlap.
// Where the brackets are depends on the range, the grain and, without a grain, the number of
// workers.
template <std::random_access_iterator In, std::random_access_iterator Out, std::copyable Value,
          class Combine = std::plus<>>
Value parallel_exclusive_scan(In begin, In end, Out out, Value init, Combine&& combine = {},
                              detail::Grain grain = 0) {
  return detail::scan<false>(begin, end, out, std::move(init), combine, grain);
}

// The same with out[i] = init + x[0] + ... + x[i].
template <std::random_access_iterator In, std::random_access_iterator Out, std::copyable Value,
          class Combine = std::plus<>>
Value parallel_inclusive_scan(In begin, In end, Out out, Value init, Combine&& combine = {},
                              detail::Grain grain = 0) {
  return detail::scan<true>(begin, end, out, std::move(init), combine, grain);
}

namespace detail {

// A merge sort whose merges are parallel, too: a merge is halved at the middle of its longer input
// (Cormen et al., "Introduction to Algorithms", 3rd ed., section 27.3). The elements move between
// the range and a buffer of the same size. Every step moves all its elements, also after an
// exception, so that none stays in the buffer.
template <class Iterator, class Less>
class MergeSort {
  using T = std::iter_value_t<Iterator>;

 public:
  MergeSort(Less& less, std::uint64_t leaf) : less_(less), leaf_(leaf) {}

  void run(Iterator begin, std::uint64_t items) {
    const auto count = static_cast<std::size_t>(items);
    std::allocator<T> memory;
    const auto give = [&](T* buffer) { memory.deallocate(buffer, count); };
    const std::unique_ptr<T, decltype(give)> buffer(memory.allocate(count), give);
    run_as_siblings(siblings_, [&] {
      between_pieces();
      in_parts(0, count, [&, to = buffer.get()](std::size_t at, std::size_t size) {
        std::uninitialized_move_n(begin + signed_of(at), size, to + at);
      });
      sort(begin, buffer.get(), count, true);
      if constexpr (!std::is_trivially_destructible_v<T>) {
        in_parts(0, count, [&](std::size_t at, std::size_t size) {
          std::destroy_n(buffer.get() + at, size);
        });
      }
    });
  }

 private:
  static constexpr std::size_t kMerge = 8192;  // elements that one worker merges

  // Calls `part(at, size)` for parts of the elements from `at` on.
  template <class Part>
  void in_parts(std::size_t at, std::size_t count, const Part& part) noexcept {
    if (count <= leaf_) return part(at, count);
    const std::size_t half = count / 2;
    both([&] { in_parts(at, half, part); }, [&] { in_parts(at + half, count - half, part); });
  }

  // Of elements in `buffer`; they end there or in `range`.
  void sort(Iterator range, T* buffer, std::size_t count, bool into_range) noexcept {
    if (count <= leaf_) {
      if (!into_range) return sort_leaf(buffer, count);
      std::move(buffer, buffer + count, range);
      return sort_leaf(range, count);
    }
    const std::size_t half = count / 2;
    both([&] { sort(range, buffer, half, !into_range); },
         [&] { sort(range + signed_of(half), buffer + half, count - half, !into_range); });
    if (into_range) {
      merge(buffer, half, buffer + half, count - half, range);
    } else {
      merge(range, half, range + signed_of(half), count - half, buffer);
    }
  }

  template <class From>
  void sort_leaf(From from, std::size_t count) noexcept {
    guarded([&] { std::sort(from, from + signed_of(count), std::ref(less_)); });
  }

  template <class From, class To>
  void merge(From a, std::size_t a_count, From b, std::size_t b_count, To out) noexcept {
    std::size_t a_half = a_count;  // what goes first
    std::size_t b_half = b_count;
    if (a_count + b_count > kMerge) {
      guarded([&] {
        if (a_count >= b_count) {
          a_half = a_count / 2;
          b_half = count_of(b, std::lower_bound(b, b + signed_of(b_count), a[signed_of(a_half)],
                                                std::ref(less_)));
        } else {
          b_half = b_count / 2;
          a_half = count_of(a, std::upper_bound(a, a + signed_of(a_count), b[signed_of(b_half)],
                                                std::ref(less_)));
        }
      });
    }
    if ((a_half == a_count && b_half == b_count) || siblings_.failed()) {
      return merge_all(a, a_count, b, b_count, out);
    }
    both([&] { merge(a, a_half, b, b_half, out); },
         [&] {
           merge(a + signed_of(a_half), a_count - a_half, b + signed_of(b_half), b_count - b_half,
                 out + signed_of(a_half + b_half));
         });
  }

  template <class From, class To>
  void merge_all(From a, std::size_t a_count, From b, std::size_t b_count, To out) noexcept {
    const From a_end = a + signed_of(a_count);
    const From b_end = b + signed_of(b_count);
    guarded([&] {
      while (a != a_end && b != b_end) {
        From& least = less_(*b, *a) ? b : a;
        *out = std::move(*least);
        ++out;
        ++least;
      }
    });
    std::move(b, b_end, std::move(a, a_end, out));
  }

  template <class Step>
  void guarded(Step&& step) noexcept {
    if (siblings_.failed()) return;
    try {
      between_pieces();
      step();
    } catch (...) {
      siblings_.fail(std::current_exception());
    }
  }

  // Neither throws, so only the fork can, before it has begun anything.
  template <class Left, class Right>
  static void both(Left&& left, Right&& right) noexcept {
    try {
      auto forked = fork(right);
      left();
      forked.join();
    } catch (...) {  // the deque cannot grow
      left();
      right();
    }
  }

  static std::ptrdiff_t signed_of(std::size_t count) { return static_cast<std::ptrdiff_t>(count); }
  template <class From>
  static std::size_t count_of(From from, From to) {
    return static_cast<std::size_t>(to - from);
  }

  SiblingContext siblings_{this_worker()->context};
  Less& less_;
  const std::uint64_t leaf_;
};

}  // namespace detail

// Sorts as std::sort does: equal elements in any order. Elements must be movable without
// exceptions; they need not be copyable. On several workers it takes memory for as many elements
// again (std::bad_alloc). After an exception of `less`, or Stopped, the range has its elements in
// any order; after one of `less`, std::sort may have lost the values of some. O(n log n)
// comparisons; steps that depend on each other: O(n / workers) and the cube of log n.
template <std::random_access_iterator Iterator, class Less = std::less<>>
  requires std::is_nothrow_move_constructible_v<std::iter_value_t<Iterator>> &&
           std::is_nothrow_move_assignable_v<std::iter_value_t<Iterator>>
void parallel_sort(Iterator begin, Iterator end, Less&& less = {}) {
  constexpr std::uint64_t kLeast = 1024;
  const std::uint64_t workers = detail::workers_of(detail::worker_or_fault("parallel_sort"));
  const std::uint64_t items = detail::distance(begin, end);
  const std::uint64_t leaf = std::max(kLeast, items / (8 * workers) + 1);
  if (workers == 1 || items <= leaf) {
    detail::between_pieces();
    return std::sort(begin, end, std::ref(less));
  }
  detail::MergeSort<Iterator, std::remove_reference_t<Less>>(less, leaf).run(begin, items);
}

}  // namespace atl
