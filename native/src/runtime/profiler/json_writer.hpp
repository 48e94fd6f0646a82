// Writes JSON directly to a sink: traces have millions of events, and a tree of them in memory
// would be many times their size.
//
// The caller opens and closes; the writer adds commas and escapes text. Bytes that are not UTF-8
// become U+FFFD, so that the output is always JSON. Numbers: integers in full, doubles so that they
// read back the same; NaN and infinities, which JSON lacks, become null.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace atl::runtime {

class JsonWriter {
 public:
  using Sink = std::function<void(std::string_view)>;
  explicit JsonWriter(Sink sink) : sink_(std::move(sink)) {}
  JsonWriter(const JsonWriter&) = delete;
  JsonWriter& operator=(const JsonWriter&) = delete;
  ~JsonWriter() = default;

  void open_object() { open('{'); }
  void close_object() { close('}'); }
  void open_array() { open('['); }
  void close_array() { close(']'); }
  void key(std::string_view name);
  void text(std::string_view value);
  void number(std::uint64_t value) { raw(std::to_string(value)); }
  void number(int value) { raw(std::to_string(value)); }
  void number(double value);
  void null() { raw("null"); }

  template <class T>
  void field(std::string_view name, const T& value) {
    key(name);
    put(value);
  }

  // Writes the rest to the sink. Call it at the end: a destructor could not report a full disk.
  void flush();

 private:
  void put(std::string_view value) { text(value); }
  void put(std::uint64_t value) { number(value); }
  void put(int value) { number(value); }
  void put(double value) { number(value); }
  template <class T>
  void put(const std::optional<T>& value) {
    if (value) {
      put(*value);
    } else {
      null();
    }
  }

  void open(char bracket);
  void close(char bracket);
  void raw(std::string_view text);
  void separate();
  void quoted(std::string_view text);

  Sink sink_;
  std::string buffer_;
  bool first_ = true;  // of the innermost object or array
  bool after_key_ = false;
};

}  // namespace atl::runtime
