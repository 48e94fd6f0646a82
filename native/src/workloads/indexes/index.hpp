// What W4 asks of an index: a map from unique 64-bit keys to values, that grows and is never cut.
//
//   index.insert(key, value)   false if the key is there. Any number of threads, beside lookups.
//                              Throws std::bad_alloc, and the index is as before
//   index.begin(key)           a Lookup: a descent that has not looked at a node yet
//   index.step(lookup)         looks at one node. true: the answer is in lookup.found
//   index.prefetch(lookup)     asks for the cache lines that the next step reads
//   index.settle()             frees what insertions replaced. Not beside any other call
//
// A lookup is cut into steps so that a thread can have many of them on their way, each waiting for
// its next node (index_join.hpp). `find` is the same steps one after the other.
//
// Every node is one block of `operator new`, so of malloc: an index is the workload whose nodes
// the allocator lays out. A value is from 0 to 2^63 - 1, so that ART can mark it in its slot.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>

namespace atl::workloads {

template <class I>
concept Index =
    std::default_initializable<I> && requires(I index, const I& shared, typename I::Lookup& lookup,
                                              std::int64_t key, std::int64_t value) {
      { index.insert(key, value) } -> std::same_as<bool>;
      { shared.begin(key) } -> std::same_as<typename I::Lookup>;
      { shared.step(lookup) } -> std::same_as<bool>;
      { shared.prefetch(lookup) } -> std::same_as<void>;
      { lookup.found } -> std::same_as<std::optional<std::int64_t>&>;
      { index.settle() } -> std::same_as<void>;
    };

template <Index I>
std::optional<std::int64_t> find(const I& index, std::int64_t key) {
  auto lookup = index.begin(key);
  while (!index.step(lookup)) continue;
  return lookup.found;
}

}  // namespace atl::workloads
