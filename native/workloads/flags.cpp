#include "flags.hpp"

#include <algorithm>
#include <charconv>

namespace atl::kernels {
namespace {

constexpr std::size_t kWidth = 80;
constexpr std::size_t kHelpAt = 18;

void check(const std::string& program, const Parameter& parameter, const std::string& value) {
  const std::string flag = "--" + std::string(parameter.name);
  if (!parameter.choices.empty()) {
    std::string known;
    for (const std::string& choice : parameter.choices) {
      if (value == choice) return;
      known += (known.empty() ? "" : ", ") + choice;
    }
    fail_usage(program, flag + " " + value + ": unknown; there are " + known);
  }
  if (parameter.most == 0) return;
  std::uint64_t number = 0;
  const auto [end, fault] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (fault != std::errc() || end != value.data() + value.size() || number < parameter.least ||
      number > parameter.most) {
    fail_usage(program, flag + " " + value + ": not a number from " +
                            std::to_string(parameter.least) + " to " +
                            std::to_string(parameter.most));
  }
}

}  // namespace

void fail_usage(const std::string& program, const std::string& message) {
  throw UsageFault(message + " (see " + program + " --help)");
}

const Parameter* find(const Parameters& parameters, std::string_view name) {
  const auto found = std::find_if(parameters.begin(), parameters.end(),
                                  [&](const Parameter& each) { return name == each.name; });
  return found == parameters.end() ? nullptr : &*found;
}

std::string wrapped(std::string_view text, std::size_t column, std::size_t indent) {
  std::string made;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    if (column + word.size() > kWidth) {
      while (made.ends_with(' ')) made.pop_back();
      made.append(1, '\n').append(indent, ' ');
      column = indent;
    }
    made.append(word).append(text.empty() ? "\n" : " ");
    column += word.size() + 1;
  }
  return made;
}

std::string help_of(const Parameters& parameters) {
  std::string text;
  for (const Parameter& parameter : parameters) {
    std::string flag = "  --" + std::string(parameter.name);
    flag.resize(std::max(flag.size() + 1, kHelpAt), ' ');
    std::string words = parameter.help;
    for (const std::string& choice : parameter.choices) {
      words += (choice == parameter.choices.front() ? ": " : ", ") + choice;
    }
    if (*parameter.otherwise != '\0') words += " (" + std::string(parameter.otherwise) + ")";
    text += flag + wrapped(words, flag.size(), kHelpAt);
  }
  return text;
}

Values read_flags(int argc, char** argv, int first, const std::string& program,
                  const std::string& part, std::initializer_list<const Parameters*> lists) {
  Values given;
  for (int at = first; at < argc; ++at) {
    const std::string_view word = argv[at];
    if (!word.starts_with("--")) fail_usage(program, std::string(word) + ": not a flag");
    const std::size_t equals = word.find('=');
    const std::string name(word.substr(2, equals == word.npos ? word.npos : equals - 2));
    const Parameter* parameter = nullptr;
    for (const Parameters* const list : lists) {
      if (parameter == nullptr) parameter = find(*list, name);
    }
    if (parameter == nullptr) fail_usage(program, "--" + name + ": " + part + " has no such flag");
    if (equals == word.npos && ++at == argc)
      fail_usage(program, "--" + name + ": a value is missing");
    const std::string value(equals == word.npos ? std::string_view(argv[at])
                                                : word.substr(equals + 1));
    check(program, *parameter, value);
    if (!given.emplace(name, value).second) fail_usage(program, "--" + name + ": given twice");
  }
  return given;
}

}  // namespace atl::kernels
