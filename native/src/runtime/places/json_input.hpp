// Reads Atoll's own JSON files without trusting them: every value is read with its type and range,
// and an invalid one becomes a RuntimeFault of one line.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "atoll/runtime/places.hpp"

namespace atl::runtime {

using Json = nlohmann::json;

class JsonInput {
 public:
  // `format`: as in the file, for example "atoll/machine"; `command`, for messages, writes one.
  JsonInput(std::string_view text, std::string format, std::string command);

  [[nodiscard]] const Json& root() const { return root_; }
  [[nodiscard]] const Json& member(const Json& object, const char* name) const;
  [[nodiscard]] const Json& list(const Json& object, const char* name) const;
  // From 0 to `most`.
  [[nodiscard]] int number(const Json& value, int most, const char* name) const;
  // -1 for null.
  [[nodiscard]] int number_or_null(const Json& object, const char* name, int most) const;
  // CPU numbers.
  [[nodiscard]] std::vector<int> cpus(const Json& list, const char* name) const;

  [[noreturn]] void fail(const std::string& why) const;

 private:
  std::string format_;
  std::string command_;
  Json root_;
};

}  // namespace atl::runtime
