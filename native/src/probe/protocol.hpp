// Requests and answers of atoll-probe (PROTOCOL.md): JSON lines and checked access to fields.
//
// A kernel is a function Json KERNEL(const Request&) in KERNEL.hpp, with a line in kernels.cpp and
// one in CMakeLists.txt. It returns its own fields and those of add_threads and add_pages, and
// throws Fault. answer() adds `ok` and `wall_ns` and turns every exception into an answer.
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

// Far above any line that Atoll sends. A longer line is rejected.
inline constexpr std::size_t kMostLineBytes = 1 << 20;
inline constexpr int kMostCpus = 1 << 16;
inline constexpr std::int64_t kMostBytes = std::int64_t{1} << 46;
inline constexpr std::int64_t kMostNs = 600'000'000'000;

// How long a kernel takes samples (samples.hpp).
struct Limits {
  std::int64_t budget_ns = 100'000'000;
  double settle = 0.02;
  std::size_t samples = 10'000;
};

// The fields of a request. Throws Fault (argument) that names the field if it has the wrong type,
// is out of range, or is missing without a fallback. null counts as missing.
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
  // One of these words; the first one if the field is missing and `required` is false.
  [[nodiscard]] std::string word(const char* field, std::initializer_list<std::string_view> words,
                                 bool required = true) const;
  [[nodiscard]] int cpu(const char* field) const;
  // A list of `least` to `most` different CPUs.
  [[nodiscard]] std::vector<int> cpus(const char* field, std::size_t least = 1,
                                      std::size_t most = kMostCpus) const;
  // 1 to kMostBytes.
  [[nodiscard]] std::size_t bytes(const char* field) const;
  [[nodiscard]] std::optional<int> node() const;
  [[nodiscard]] bool null_run() const { return flag("null", false); }
  [[nodiscard]] Limits limits() const;
  // Returns nullptr if the field is missing or null.
  [[nodiscard]] const Json* find(const char* field) const;

 private:
  Json fields_;
};

// Add the common fields: `threads`, and `pages` with `huge`.
void add_threads(Json& answer, const Team& team);
void add_pages(Json& answer, const Memory& memory);

// Returns the answer to one line, without a newline. No content of a line makes it throw.
[[nodiscard]] std::string answer(const std::string& line);

// Returns an answer with `ok` false. `error` is cut to one line.
[[nodiscard]] std::string refusal(Code code, std::string_view error);

}  // namespace atl::probe
