// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
// What the plugin has to know of an x86 instruction, from its bytes (Intel SDM, volume 2, 2.1).
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <span>

namespace atl::cachesim {

using Code = std::span<const std::uint8_t>;

// Whether it is an atomic read-modify-write: with a lock prefix, or xchg.
inline bool is_atomic(Code code) {
  constexpr std::uint8_t kPrefixes[] = {0x26, 0x2E, 0x36, 0x3E, 0x64, 0x65,  // segments
                                        0x66, 0x67, 0xF2, 0xF3};             // sizes, repetition
  for (const std::uint8_t byte : code) {
    if (byte == 0xF0 || byte == 0x86 || byte == 0x87) return true;
    const bool is_rex = (byte & 0xF0) == 0x40;
    if (!is_rex && std::ranges::find(kPrefixes, byte) == std::end(kPrefixes)) return false;
  }
  return false;
}

// Whether it is a mov to CR3.
inline bool sets_page_table(Code code) {
  if (!code.empty() && (code[0] & 0xF0) == 0x40) code = code.subspan(1);
  return code.size() >= 3 && code[0] == 0x0F && code[1] == 0x22 && (code[2] & 0xF8) == 0xD8;
}

inline bool halts(Code code) { return !code.empty() && code[0] == 0xF4; }

}  // namespace atl::cachesim
