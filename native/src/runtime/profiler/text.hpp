// Helpers of the profiler's parsers of kernel texts. Pure, except `read_text`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace atl::runtime {

// The whole text as a decimal number; empty for anything else.
[[nodiscard]] std::optional<std::uint64_t> whole_number(std::string_view text);
// The text without blanks and line ends around it.
[[nodiscard]] std::string_view trimmed(std::string_view text);
[[nodiscard]] std::vector<std::string_view> lines_of(std::string_view text);
[[nodiscard]] std::vector<std::string_view> words_of(std::string_view text);
// The text after the colon in the line that begins with `key`.
[[nodiscard]] std::optional<std::string_view> value_of(std::string_view text, std::string_view key);

// The content of a small file; empty if it cannot be read.
[[nodiscard]] std::optional<std::string> read_text(const std::string& path);

}  // namespace atl::runtime
