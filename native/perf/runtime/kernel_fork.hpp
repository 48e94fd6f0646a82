// Fork and join: four trees that only fork, as in the runtimes' own benchmarks.
//
// - fib: two children per task, little work (Frigo, Leiserson and Randall, "The implementation of
//   the Cilk-5 multithreaded language", PLDI 1998).
// - skynet: ten children per task; a leaf returns its number.
// - matmul: C += A B by quadrants, four products at once and then the other four, down to
//   one by one.
// - nqueens: a child for each safe square; some work per task.
//
// Each returns a result that can be checked.
//
// A runtime whose tasks are not functions brings its own fib and skynet (OwnTrees).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "backend.hpp"

namespace atl::perf {

template <class Runtime>
concept OwnTrees = requires(Runtime& on) {
  on.fib(1);
  on.skynet(0L, 1L);
};

// ---- fib
// -----------------------------------------------------------------------------------------

template <class Runtime>
long fib(int n) {
  if (n < 2) return n;
  long first = 0;
  long second = 0;
  Runtime::all([&first, n] { first = fib<Runtime>(n - 1); },
               [&second, n] { second = fib<Runtime>(n - 2); });
  return first + second;
}

constexpr long fib_of(int n) {
  long last = 0;
  long next = 1;
  for (int i = 0; i < n; ++i) {
    const long sum = last + next;
    last = next;
    next = sum;
  }
  return last;
}

// One fork per call with n > 1.
constexpr long forks_of_fib(int n) { return fib_of(n + 1) - 1; }

// ---- skynet
// --------------------------------------------------------------------------------------

template <class Runtime>
long skynet(long first, long leaves) {
  if (leaves == 1) return first;
  std::array<long, 10> sums{};
  typename Runtime::Children children;
  const long part = leaves / 10;
  for (long i = 0; i < 10; ++i) {
    children.fork([&sum = sums[static_cast<std::size_t>(i)], from = first + i * part, part] {
      sum = skynet<Runtime>(from, part);
    });
  }
  children.join();
  long sum = 0;
  for (const long one : sums) sum += one;
  return sum;
}

// 10 + 100 + ... + leaves.
constexpr long forks_of_skynet(long leaves) { return (leaves - 1) / 9 * 10; }

// ---- matmul
// --------------------------------------------------------------------------------------

// Square matrices within rows of `stride`.
template <class Runtime>
void matmul(float* c, const float* a, const float* b, int n, std::ptrdiff_t stride) {
  if (n == 1) {
    *c += *a * *b;
    return;
  }
  const int half = n / 2;
  const auto at = [half, stride](auto* m, int row, int column) {
    return m + row * half * stride + column * half;
  };
  for (int k = 0; k < 2; ++k) {
    const auto product = [=](int row, int column) {
      return [=] {
        matmul<Runtime>(at(c, row, column), at(a, row, k), at(b, k, column), half, stride);
      };
    };
    Runtime::all(product(0, 0), product(0, 1), product(1, 0), product(1, 1));
  }
}

// Three forks for each four products.
constexpr long forks_of_matmul(int n) { return n == 1 ? 0 : 6 + 8 * forks_of_matmul(n / 2); }

// ---- nqueens
// -------------------------------------------------------------------------------------

template <std::size_t N>
using Queens = std::array<signed char, N>;  // the queen's column in each row

template <std::size_t N>
bool is_safe(const Queens<N>& queens, int row, int column) {
  for (int above = 0; above < row; ++above) {
    const int apart = std::abs(queens[static_cast<std::size_t>(above)] - column);
    if (apart == 0 || apart == row - above) return false;
  }
  return true;
}

// Counts the solutions from here.
template <class Runtime, std::size_t N>
long nqueens(const Queens<N>& queens, int row) {
  if (row == static_cast<int>(N)) return 1;
  std::array<long, N> ways{};
  typename Runtime::Children children;
  for (int column = 0; column < static_cast<int>(N); ++column) {
    if (!is_safe(queens, row, column)) continue;
    Queens<N> next = queens;
    next[static_cast<std::size_t>(row)] = static_cast<signed char>(column);
    children.fork([&found = ways[static_cast<std::size_t>(column)], next, row] {
      found = nqueens<Runtime>(next, row + 1);
    });
  }
  children.join();
  long sum = 0;
  for (const long one : ways) sum += one;
  return sum;
}

// One spawn per queen that can be placed.
template <std::size_t N>
long spawns_of_nqueens(const Queens<N>& queens = {}, int row = 0) {
  if (row == static_cast<int>(N)) return 0;
  long spawns = 0;
  for (int column = 0; column < static_cast<int>(N); ++column) {
    if (!is_safe(queens, row, column)) continue;
    Queens<N> next = queens;
    next[static_cast<std::size_t>(row)] = static_cast<signed char>(column);
    spawns += 1 + spawns_of_nqueens(next, row + 1);
  }
  return spawns;
}

// Sloane's A000170.
constexpr long queens_of(std::size_t n) {
  constexpr std::array<long, 13> kKnown = {1, 1, 0, 0, 2, 10, 4, 40, 92, 352, 724, 2680, 14200};
  return kKnown[n];
}

}  // namespace atl::perf
