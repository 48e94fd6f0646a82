// Flags of the programs in this folder: what a flag is, reading, checks and help.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace atl::kernels {

// The user's mistake: one line for standard error, and exit status 2.
class UsageFault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// What a verifier throws: one line that says what is wrong, and exit status 1.
class WrongAnswer : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

using Values = std::map<std::string, std::string>;  // by name of the parameter

// A flag `--name VALUE` of a program: a whole number from `least` to `most`, or one of `choices`,
// or, with neither, any text (a path).
struct Parameter {
  const char* name;
  const char* otherwise;  // the default
  const char* help;       // begins with a small letter, no full stop
  std::uint64_t least = 0;
  std::uint64_t most = 0;  // 0: not a number
  std::vector<std::string> choices = {};
  // Whether it has an effect beside those before it in its list; null: always.
  bool (*applies)(const Values& given) = nullptr;
};

using Parameters = std::vector<Parameter>;

// Reads argv from `first` on: --name VALUE or --name=VALUE, each at most once, of one of the lists.
// Throws UsageFault, which names `program`, and `part`, whose flags they are.
[[nodiscard]] Values read_flags(int argc, char** argv, int first, const std::string& program,
                                const std::string& part,
                                std::initializer_list<const Parameters*> lists);
[[noreturn]] void fail_usage(const std::string& program, const std::string& message);

// The parameter of this name, or null.
[[nodiscard]] const Parameter* find(const Parameters& parameters, std::string_view name);

// The lines of --help.
[[nodiscard]] std::string help_of(const Parameters& parameters);

// The words of `text` in lines of at most 80 columns, the first of which goes on at `column`; the
// others begin at `indent`.
[[nodiscard]] std::string wrapped(std::string_view text, std::size_t column, std::size_t indent);

}  // namespace atl::kernels
