// Requests and answers of atoll-probe as PROTOCOL.md has them: JSON lines, checked reading.
//
// A kernel is a function Json KERNEL(const Request&) in KERNEL.hpp, with a line in kernels.cpp and
// one in CMakeLists.txt. It returns its own fields with those of add_threads and add_pages, and
// throws Fault; answer() adds `ok` and `wall_ns` and makes an answer out of every exception.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fault.hpp"

namespace atl::probe {

using Json = nlohmann::ordered_json;

class Memory;
class Team;

// No line of ours is near it; a longer one is refused.
inline constexpr std::size_t kMostLineBytes = 1 << 20;
inline constexpr int kMostCpus = 1 << 16;
inline constexpr std::int64_t kMostBytes = std::int64_t{1} << 46;
inline constexpr std::int64_t kMostNs = 600'000'000'000;

// How long a kernel goes on sampling (samples.hpp).
struct Limits {
  std::int64_t budget_ns = 100'000'000;
  double settle = 0.02;
  std::size_t samples = 10'000;
};

// A request's fields. A field of another type or out of its range is a Fault of code argument
// that names it; so is one that is missing, unless there is a fallback. null is as missing.
class Request {
 public:
  explicit Request(Json fields);

  [[nodiscard]] std::int64_t integer(const char* field, std::int64_t least,
                                     std::int64_t most) const;
  [[nodiscard]] std::int64_t integer(const char* field, std::int64_t least, std::int64_t most,
                                     std::int64_t fallback) const;
  [[nodiscard]] std::optional<std::int64_t> integer_or_null(const char* field, std::int64_t least,
                                                            std::int64_t most) const;
  [[nodiscard]] bool flag(const char* field, bool fallback) const;
  // One of these words; the first where the field is missing and `required` is false.
  [[nodiscard]] std::string word(const char* field, std::initializer_list<std::string_view> words,
                                 bool required = true) const;
  [[nodiscard]] int cpu(const char* field) const;
  // As many as `least` to `most`, each once.
  [[nodiscard]] std::vector<int> cpus(const char* field, std::size_t least = 1,
                                      std::size_t most = kMostCpus) const;
  // 1 to kMostBytes.
  [[nodiscard]] std::size_t bytes(const char* field) const;
  [[nodiscard]] std::optional<int> node() const;
  [[nodiscard]] bool null_run() const { return flag("null", false); }
  [[nodiscard]] Limits limits() const;
  // nullptr: missing, or null.
  [[nodiscard]] const Json* find(const char* field) const;

 private:
  Json fields_;
};

// The common fields `threads`; `pages` and `huge`.
void add_threads(Json& answer, const Team& team);
void add_pages(Json& answer, const Memory& memory);

// The answer to one line, without its newline. Never throws for what a line says.
[[nodiscard]] std::string answer(const std::string& line);

// An answer that says no. `error` is cut to one line.
[[nodiscard]] std::string refusal(Code code, std::string_view error);

}  // namespace atl::probe
