// The names of code sections and their numbers, one list for the process: sections of one name are
// one section, wherever in the program and on whatever runtime they stand. Thread-safe.
#pragma once

#include <string>
#include <string_view>

namespace atl::runtime {

// A worker has a place for each, made at the first use (264 bytes).
inline constexpr int kMaxSections = 256;
inline constexpr int kOtherSections = kMaxSections - 1;  // where names that found no number go

// Takes a lock; workers remember the answer.
[[nodiscard]] int section_id(std::string_view name);
[[nodiscard]] std::string section_name(int id);

}  // namespace atl::runtime
