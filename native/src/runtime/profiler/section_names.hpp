// The names of code sections and their numbers, one list for the process: sections with the same
// name are one section, anywhere in the program and on any runtime. Thread-safe.
#pragma once

#include <string>
#include <string_view>

namespace atl::runtime {

// A worker makes a record for each at its first use (264 bytes).
inline constexpr int kMaxSections = 256;
inline constexpr int kOtherSections = kMaxSections - 1;  // the number of all further names

// Takes a lock; workers remember the result.
[[nodiscard]] int section_id(std::string_view name);
[[nodiscard]] std::string section_name(int id);

}  // namespace atl::runtime
