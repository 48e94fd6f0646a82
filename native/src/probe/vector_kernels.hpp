// Writes and reads of one chunk of a vector, from no byte at all upwards, at any address.
//
// 16-byte vectors, which every 64-bit CPU has: two stores or loads of them a cycle are more than
// any level behind L1 takes or gives, and those levels are what `vector` compares.
#pragma once

#include <cstddef>
#include <cstdint>

#include "parts.hpp"

namespace atl::probe {

// Where a vector is divided: at cache lines when each thread gets one at least, else anywhere, for
// then threads share lines whatever one does.
inline constexpr std::size_t kVectorLineBytes = 64;
[[nodiscard]] constexpr Part vector_part(std::size_t bytes, std::size_t threads,
                                         std::size_t index) {
  return part_of(bytes, threads, index, bytes >= threads * kVectorLineBytes ? kVectorLineBytes : 1);
}

// What iteration `iteration` writes into every byte; never 0, and no two neighbours are the same.
[[nodiscard]] constexpr std::uint8_t vector_value(std::size_t iteration) {
  return static_cast<std::uint8_t>(iteration % 251 + 1);
}

void vector_write(std::byte* data, std::size_t bytes, std::uint8_t value);
// The sum, modulo 2^64, of the chunk's 8-byte words and of the bytes after them.
[[nodiscard]] std::uint64_t vector_read(const std::byte* data, std::size_t bytes);
// The control of the two loops alone.
void vector_null(std::size_t bytes);

[[nodiscard]] bool vector_verify(const std::byte* data, std::size_t bytes, std::uint8_t value);
// What vector_read gives for a chunk that vector_write filled.
[[nodiscard]] std::uint64_t vector_sum(std::size_t bytes, std::uint8_t value);

}  // namespace atl::probe
