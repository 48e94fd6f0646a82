#include "json_writer.hpp"

#include <array>
#include <charconv>
#include <cmath>

namespace atl::runtime {

namespace {

constexpr std::size_t kBufferBytes = 64 * 1024;

// The length of the UTF-8 sequence at `at`; 0 if it is invalid (RFC 3629: no surrogates, nothing
// above U+10FFFF, no overlong forms).
std::size_t utf8_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) -> unsigned {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0;
  };
  const auto tail = [&](std::size_t i) { return (byte(i) & 0xc0U) == 0x80; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf && tail(1)) return 2;
  if ((first & 0xf0U) == 0xe0 && tail(1) && tail(2)) {
    const unsigned code = (first & 0xfU) << 6 | (byte(1) & 0x3fU);
    return code >= 0x20 && (code < 0x360 || code > 0x37f) ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4 && tail(1) && tail(2) && tail(3)) {
    const unsigned code = (first & 0x7U) << 6 | (byte(1) & 0x3fU);
    return code >= 0x10 && code <= 0x10f ? 4 : 0;
  }
  return 0;
}

}  // namespace

void JsonWriter::key(std::string_view name) {
  separate();
  quoted(name);
  buffer_ += ':';
  after_key_ = true;
}

void JsonWriter::text(std::string_view value) {
  separate();
  quoted(value);
}

void JsonWriter::number(double value) {
  if (!std::isfinite(value)) {
    null();
    return;
  }
  std::array<char, 32> digits{};
  const auto [end, fault] = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  raw(std::string_view(digits.data(), static_cast<std::size_t>(end - digits.data())));
}

void JsonWriter::flush() {
  sink_(buffer_);
  buffer_.clear();
}

void JsonWriter::open(char bracket) {
  separate();
  buffer_ += bracket;
  first_ = true;
}

void JsonWriter::close(char bracket) {
  buffer_ += bracket;
  first_ = false;
}

void JsonWriter::raw(std::string_view text) {
  separate();
  buffer_ += text;
}

void JsonWriter::separate() {
  if (buffer_.size() >= kBufferBytes) flush();
  if (!first_ && !after_key_) buffer_ += ',';
  first_ = false;
  after_key_ = false;
}

void JsonWriter::quoted(std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  buffer_ += '"';
  for (std::size_t at = 0; at < text.size();) {
    const auto byte = static_cast<unsigned char>(text[at]);
    const std::size_t length = utf8_length(text, at);
    if (byte == '"' || byte == '\\') {
      buffer_ += '\\';
      buffer_ += text[at];
    } else if (byte < 0x20) {
      buffer_ += "\\u00";
      buffer_ += kHex[byte >> 4];
      buffer_ += kHex[byte & 0xfU];
    } else if (length == 0) {
      buffer_ += "\\ufffd";
    } else {
      buffer_ += text.substr(at, length);
    }
    at += length == 0 ? 1 : length;
  }
  buffer_ += '"';
}

}  // namespace atl::runtime
