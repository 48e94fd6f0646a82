#include "protocol.hpp"

#include <algorithm>
#include <cmath>
#include <new>
#include <utility>

#include "clock.hpp"
#include "kernels.hpp"
#include "memory.hpp"
#include "threads.hpp"

namespace atl::probe {

namespace {

[[noreturn]] void refuse(const std::string& message) { throw Fault(Code::kArgument, message); }

std::string quoted(const char* field) { return std::string("'") + field + "'"; }

const char* name_of(Code code) {
  switch (code) {
    case Code::kArgument: return "argument";
    case Code::kCpu: return "cpu";
    case Code::kMemory: return "memory";
    case Code::kKernel: break;
  }
  return "kernel";
}

// Returns the value as an integer within the range.
std::int64_t ranged(const Json& value, const char* field, std::int64_t least, std::int64_t most) {
  // An unsigned number above the signed range must not wrap around.
  const bool fits = value.is_number_integer() &&
                    (!value.is_number_unsigned() ||
                     value.get<std::uint64_t>() <= static_cast<std::uint64_t>(INT64_MAX));
  const std::int64_t number = fits ? value.get<std::int64_t>() : 0;
  if (!fits || number < least || number > most) {
    refuse(quoted(field) + " must be a whole number from " + std::to_string(least) + " to " +
           std::to_string(most));
  }
  return number;
}

// An answer cannot contain bytes that are not UTF-8.
std::string dump(const Json& answer) {
  return answer.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json parse(const std::string& line) {
  try {
    return Json::parse(line);
  } catch (const Json::exception&) {
    refuse("this line is not JSON");
  }
}

Json perform(const std::string& line) {
  const std::int64_t begin_ns = now_ns();
  const Request request(parse(line));
  const Json* const name = request.find("do");
  if (name == nullptr || !name->is_string()) refuse("'do' is missing");
  const Kernel kernel = find_kernel(name->get<std::string>());
  if (kernel == nullptr) refuse("'do': this version has no '" + name->get<std::string>() + "'");
  Json answer{{"ok", true}};
  answer.update(kernel(request));
  answer["wall_ns"] = now_ns() - begin_ns;
  return answer;
}

}  // namespace

Request::Request(Json fields) : fields_(std::move(fields)) {
  if (!fields_.is_object()) refuse("a request must be a JSON object");
}

const Json* Request::find(const char* field) const {
  const auto found = fields_.find(field);
  return found == fields_.end() || found->is_null() ? nullptr : &*found;
}

std::optional<std::int64_t> Request::integer_or_null(const char* field, std::int64_t least,
                                                     std::int64_t most) const {
  const Json* const value = find(field);
  if (value == nullptr) return std::nullopt;
  return ranged(*value, field, least, most);
}

std::int64_t Request::integer(const char* field, std::int64_t least, std::int64_t most) const {
  const std::optional<std::int64_t> value = integer_or_null(field, least, most);
  if (!value) refuse(quoted(field) + " is missing");
  return *value;
}

std::int64_t Request::integer(const char* field, std::int64_t least, std::int64_t most,
                              std::int64_t fallback) const {
  return integer_or_null(field, least, most).value_or(fallback);
}

bool Request::flag(const char* field, bool fallback) const {
  const Json* const value = find(field);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) refuse(quoted(field) + " must be true or false");
  return value->get<bool>();
}

std::string Request::word(const char* field, std::initializer_list<std::string_view> words,
                          bool required) const {
  const Json* const value = find(field);
  if (value == nullptr && !required) return std::string(*words.begin());
  if (value != nullptr && value->is_string()) {
    const std::string given = value->get<std::string>();
    if (std::find(words.begin(), words.end(), given) != words.end()) return given;
  }
  std::string known;
  for (const std::string_view word : words) {
    known += known.empty() ? "" : ", ";
    known += word;
  }
  refuse(quoted(field) + " must be one of: " + known);
}

int Request::cpu(const char* field) const {
  return static_cast<int>(integer(field, 0, kMostCpus - 1));
}

std::vector<int> Request::cpus(const char* field, std::size_t least, std::size_t most) const {
  const Json* const value = find(field);
  if (value == nullptr || !value->is_array() || value->size() < least || value->size() > most) {
    const std::string count =
        least == most ? std::to_string(least)
                      : (most == kMostCpus ? "at least " + std::to_string(least)
                                           : std::to_string(least) + " to " + std::to_string(most));
    refuse(quoted(field) + " must be a list of " + count + " CPUs");
  }
  std::vector<int> cpus;
  for (const Json& element : *value) {
    const auto cpu = static_cast<int>(ranged(element, field, 0, kMostCpus - 1));
    if (std::find(cpus.begin(), cpus.end(), cpu) != cpus.end()) {
      refuse(quoted(field) + ": CPU " + std::to_string(cpu) + " appears twice");
    }
    cpus.push_back(cpu);
  }
  return cpus;
}

std::size_t Request::bytes(const char* field) const {
  return static_cast<std::size_t>(integer(field, 1, kMostBytes));
}

std::optional<int> Request::node() const {
  const auto node = integer_or_null("node", 0, 4095);
  return node ? std::optional(static_cast<int>(*node)) : std::nullopt;
}

Limits Request::limits() const {
  Limits limits;
  limits.budget_ns = integer("budget_ns", 0, kMostNs, limits.budget_ns);
  limits.samples = static_cast<std::size_t>(
      integer("samples", 1, 1'000'000, static_cast<std::int64_t>(limits.samples)));
  const Json* const settle = find("settle");
  if (settle != nullptr) {
    if (!settle->is_number() || !(settle->get<double>() >= 0 && settle->get<double>() <= 1)) {
      refuse("'settle' must be a number from 0 to 1");
    }
    limits.settle = settle->get<double>();
  }
  return limits;
}

void add_threads(Json& answer, const Team& team) {
  Json threads = Json::array();
  for (const ThreadRecord& record : team.records()) {
    threads.push_back({{"tid", record.tid},
                       {"cpu", record.cpu},
                       {"seen", {record.seen_begin, record.seen_end}},
                       {"involuntary", record.involuntary}});
  }
  answer["threads"] = std::move(threads);
}

void add_pages(Json& answer, const Memory& memory) {
  const PageReport report = memory.report();
  Json pages = Json::object();
  for (const auto& [node, count] : report.nodes) pages[std::to_string(node)] = count;
  answer["pages"] = std::move(pages);
  answer["huge"] = report.huge;
}

std::string refusal(Code code, std::string_view error) {
  return dump(
      {{"ok", false}, {"code", name_of(code)}, {"error", error.substr(0, error.find('\n'))}});
}

std::string answer(const std::string& line) {
  try {
    return dump(perform(line));
  } catch (const Fault& fault) {
    return refusal(fault.code(), fault.what());
  } catch (const std::bad_alloc&) {
    return refusal(Code::kMemory, "the probe itself has run out of memory");
  } catch (const std::exception& fault) {
    return refusal(Code::kKernel, fault.what());
  }
}

}  // namespace atl::probe
