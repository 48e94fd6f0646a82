#include "json_input.hpp"

#include <utility>

#include "build.hpp"

namespace atl::runtime {
namespace {

// Our formats nest less than 10 deep. nlohmann parses without recursion, but compares, copies and
// prints with it, so deeper input is refused.
constexpr int kDeepest = 64;

}  // namespace

JsonInput::JsonInput(std::string_view text, std::string format, std::string command)
    : format_(std::move(format)), command_(std::move(command)) {
  const auto not_too_deep = [this](int depth, Json::parse_event_t, const Json&) {
    if (depth > kDeepest) fail("it nests too deeply");
    return true;
  };
  root_ = Json::parse(text, not_too_deep, /*allow_exceptions=*/false);
  if (root_.is_discarded()) fail("it is not JSON; write it with '" + command_ + "'");
  const auto format_found = root_.is_object() ? root_.find("format") : root_.end();
  if (!root_.is_object() || format_found == root_.end() || *format_found != format_) {
    fail("it is of another format; write it with '" + command_ + "'");
  }
  if (member(root_, "version") != 1) {
    fail("only version 1 can be read; write it again with '" + command_ + "' of this Atoll");
  }
}

void JsonInput::fail(const std::string& why) const {
  throw RuntimeFault("not a usable " + format_ + " file: " + why);
}

const Json& JsonInput::member(const Json& object, const char* name) const {
  const auto found = object.is_object() ? object.find(name) : object.end();
  if (!object.is_object() || found == object.end()) {
    fail(std::string("'") + name + "' is missing");
  }
  return *found;
}

const Json& JsonInput::list(const Json& object, const char* name) const {
  const Json& found = member(object, name);
  if (!found.is_array()) fail(std::string("'") + name + "' is not a list");
  return found;
}

int JsonInput::number(const Json& value, int most, const char* name) const {
  // Unsigned whole numbers only: a float or a huge number would be truncated silently.
  if (!value.is_number_unsigned() ||
      value.get<Json::number_unsigned_t>() > static_cast<Json::number_unsigned_t>(most)) {
    fail(std::string("'") + name + "' is not a number from 0 to " + std::to_string(most));
  }
  return value.get<int>();
}

int JsonInput::number_or_null(const Json& object, const char* name, int most) const {
  const Json& value = member(object, name);
  return value.is_null() ? -1 : number(value, most, name);
}

std::vector<int> JsonInput::cpus(const Json& list, const char* name) const {
  if (!list.is_array()) fail(std::string("'") + name + "' is not a list");
  std::vector<int> numbers;
  for (const Json& value : list) numbers.push_back(number(value, kMostCpu, name));
  return numbers;
}

}  // namespace atl::runtime
