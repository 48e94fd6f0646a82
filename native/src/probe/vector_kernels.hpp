// Writes and reads of one chunk of a vector, of any size (even 0 bytes), at any address.
//
// 16-byte vectors, which every 64-bit CPU has: two stores or loads of them per cycle exceed the
// bandwidth of any level behind L1, and `vector` compares those levels.
#pragma once

#include <cstddef>
#include <cstdint>

#include "parts.hpp"

namespace atl::probe {

// Where a vector is divided: at cache lines if each thread gets at least one, otherwise anywhere,
// because then threads share lines in any case.
inline constexpr std::size_t kVectorLineBytes = 64;
[[nodiscard]] constexpr Part vector_part(std::size_t bytes, std::size_t threads,
                                         std::size_t index) {
  return part_of(bytes, threads, index, bytes >= threads * kVectorLineBytes ? kVectorLineBytes : 1);
}

// The byte that iteration `iteration` writes: never 0, and different from its neighbours'.
[[nodiscard]] constexpr std::uint8_t vector_value(std::size_t iteration) {
  return static_cast<std::uint8_t>(iteration % 251 + 1);
}

void vector_write(std::byte* data, std::size_t bytes, std::uint8_t value);
// Returns the sum, modulo 2^64, of the chunk's 8-byte words and the remaining bytes.
[[nodiscard]] std::uint64_t vector_read(const std::byte* data, std::size_t bytes);
// Only the control of the two loops.
void vector_null(std::size_t bytes);

[[nodiscard]] bool vector_verify(const std::byte* data, std::size_t bytes, std::uint8_t value);
// The result of vector_read for a chunk that vector_write filled.
[[nodiscard]] std::uint64_t vector_sum(std::size_t bytes, std::uint8_t value);

}  // namespace atl::probe
