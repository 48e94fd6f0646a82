#include "places.hpp"

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

#include "fault.hpp"
#include "levels.hpp"

namespace atl::exec {
namespace {

constexpr std::string_view kOperators = "~x^";
constexpr std::string_view kHexDigits = "0123456789abcdefABCDEF";
constexpr std::size_t kMaxDigits = 7;  // more than any CPU or object needs; keeps sums in range

bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

bool is_alnum(char letter) { return std::isalnum(static_cast<unsigned char>(letter)) != 0; }

std::string quoted(std::string_view text) { return std::string("'").append(text).append("'"); }

// Selects objects of a level: `count` of them, starting at `first`, in steps of `step`.
struct IndexRange {
  std::size_t first = 0;
  std::size_t step = 1;
  std::optional<std::size_t> count;  // nullopt: to the end of the level
  bool wraps = false;                // N:count wraps around at the end of the level
};

struct Step {
  Level level;
  std::string type;  // as the user wrote it, for messages
  std::vector<IndexRange> ranges;
};

class Parser {
 public:
  explicit Parser(std::string_view place) : place_(place) {}

  // TYPE:INDEX[.TYPE:INDEX...]
  [[nodiscard]] std::vector<Step> chain(std::string_view text) const {
    std::vector<Step> steps;
    while (true) {
      const std::size_t dot = text.find('.');
      steps.push_back(step(text.substr(0, dot)));
      if (dot == std::string_view::npos) {
        return steps;
      }
      text.remove_prefix(dot + 1);
    }
  }

  // 0xHEX, or comma-separated blocks of 32 bits, the most significant first.
  // A leading 0xf...f sets all bits above (here up to `limit`, the end of the machine).
  [[nodiscard]] CpuSet cpu_set(std::string_view text, std::size_t limit) const {
    constexpr std::string_view kInfinite = "0xf...f";
    const bool infinite = lower(text).starts_with(kInfinite);
    if (infinite) {
      text.remove_prefix(kInfinite.size());
      if (text.starts_with(',')) {
        text.remove_prefix(1);
      } else if (!text.empty()) {
        fail("0xf...f must stand alone or before a comma");
      }
    }
    std::string bits;  // hexadecimal, most significant first
    const bool blocks = text.find(',') != std::string_view::npos || infinite;
    while (!text.empty()) {
      const std::size_t comma = text.find(',');
      std::string_view block = text.substr(0, comma);
      if (lower(block).starts_with("0x")) {
        block.remove_prefix(2);
        if (block.empty()) {
          fail("0x has no digit");
        }
      }
      if (block.find_first_not_of(kHexDigits) != std::string_view::npos ||
          (blocks && block.size() > 8)) {
        fail("a CPU set needs hexadecimal digits, at most 8 between commas");
      }
      bits.append(blocks ? 8 - block.size() : 0, '0').append(block);
      text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
    }
    CpuSet set;
    for (std::size_t digit = 0; digit < bits.size(); ++digit) {
      const int value = std::stoi(std::string(1, bits[bits.size() - 1 - digit]), nullptr, 16);
      for (std::size_t bit = 0; bit < 4; ++bit) {
        if ((value >> bit & 1) != 0) {
          set.insert(digit * 4 + bit);
        }
      }
    }
    for (std::size_t index = bits.size() * 4; infinite && index < limit; ++index) {
      set.insert(index);
    }
    return set;
  }

  [[noreturn]] void fail(const std::string& why) const {
    throw Fault("place " + quoted(place_) + ": " + why);
  }

 private:
  [[nodiscard]] Step step(std::string_view text) const {
    const std::size_t colon = text.find(':');
    const std::string_view type = text.substr(0, colon);
    if (colon == std::string_view::npos) {
      fail("an index is missing after " + quoted(type) + "; use for example core:0");
    }
    const std::optional<Level> level = level_named(type);
    if (!level) {
      fail(quoted(type) + " is not an object type; choose from " + std::string(kLevelNames));
    }
    Step result{*level, std::string(type), {}};
    std::string_view indices = text.substr(colon + 1);
    while (true) {
      const std::size_t comma = indices.find(',');
      result.ranges.push_back(range(indices.substr(0, comma)));
      if (comma == std::string_view::npos) {
        return result;
      }
      indices.remove_prefix(comma + 1);
    }
  }

  // X, X-Y, X-, X:N, all, odd, even
  [[nodiscard]] IndexRange range(std::string_view text) const {
    if (text == "all" || text == "even") {
      return {.first = 0, .step = text == "all" ? 1U : 2U, .count = std::nullopt};
    }
    if (text == "odd") {
      return {.first = 1, .step = 2, .count = std::nullopt};
    }
    std::string_view rest = text;
    const std::size_t first = number(rest, text);
    if (rest.empty()) {
      return {.first = first, .count = 1};
    }
    const char separator = rest.front();
    rest.remove_prefix(1);
    if (separator == '-' && rest.empty()) {
      return {.first = first, .count = std::nullopt};
    }
    const std::size_t second = separator == '-' || separator == ':' ? number(rest, text) : 0;
    if ((separator != '-' && separator != ':') || !rest.empty()) {
      fail_index(text);
    }
    if (separator == ':') {
      return {.first = first, .count = second, .wraps = true};
    }
    if (second < first) {
      fail("the range " + quoted(text) + " runs backwards");
    }
    return {.first = first, .count = second - first + 1};
  }

  std::size_t number(std::string_view& rest, std::string_view whole) const {
    std::size_t value = 0;
    std::size_t digits = 0;
    while (digits < rest.size() && is_digit(rest[digits])) {
      value = value * 10 + static_cast<std::size_t>(rest[digits] - '0');
      if (++digits > kMaxDigits) {
        fail_index(whole);
      }
    }
    if (digits == 0) {
      fail_index(whole);
    }
    rest.remove_prefix(digits);
    return value;
  }

  [[noreturn]] void fail_index(std::string_view text) const {
    fail(quoted(text) +
         " is not an index; use N, N-M, N-, N:COUNT, all, odd, even or a list of them");
  }

  std::string_view place_;
};

// Whether an object counts as inside `scope`: as in hwloc, all its CPUs must be inside.
bool is_inside(const Object& object, const CpuSet& scope) {
  return object.cpus.empty() ? scope.intersects(object.near_cpus) : scope.includes(object.cpus);
}

std::vector<const Object*> objects_inside(const PlaceTopology& topology, Level level,
                                          const CpuSet* scope) {
  std::vector<const Object*> found;
  for (const Object& object : topology[level]) {
    if (scope == nullptr || is_inside(object, *scope)) {
      found.push_back(&object);
    }
  }
  return found;
}

class Resolver {
 public:
  Resolver(const PlaceTopology& topology, const Parser& parser)
      : topology_(topology), parser_(parser) {}

  // Returns the CPUs of the last step's objects. Each step is searched inside the objects of the
  // previous step. For the first step `scope` is null: the whole machine.
  [[nodiscard]] CpuSet cpus(std::span<const Step> steps, const CpuSet* scope,
                            const std::string& inside = "") const {
    const Step& step = steps.front();
    const std::vector<const Object*> candidates = objects_inside(topology_, step.level, scope);
    CpuSet result;
    for (const IndexRange& range : step.ranges) {
      for (const std::size_t index : indices(range, step, candidates.size(), inside)) {
        const CpuSet& own = candidates[index]->cpus;
        const std::string name = step.type + ":" + std::to_string(index);
        result |= steps.size() == 1
                      ? own
                      : cpus(steps.subspan(1), &own, inside.empty() ? name : inside + "." + name);
      }
    }
    return result;
  }

 private:
  [[nodiscard]] std::vector<std::size_t> indices(const IndexRange& range, const Step& step,
                                                 std::size_t width,
                                                 const std::string& inside) const {
    const std::string where = inside.empty() ? "this machine" : inside;
    if (width == 0) {
      parser_.fail(where + " has no " + step.type);
    }
    std::size_t count = 0;
    if (!range.count) {
      count = range.first < width ? (width - range.first + range.step - 1) / range.step : 0;
    } else {
      count = range.wraps ? std::min(*range.count, width) : *range.count;
    }
    std::vector<std::size_t> found;
    const std::size_t last = count == 0 ? range.first : range.first + (count - 1) * range.step;
    const std::size_t beyond = range.wraps ? range.first : last;
    // 'odd' of a level with one object is the empty set; everything else names an object.
    if (beyond >= width && !(range.step == 2 && count == 0)) {
      parser_.fail(where + " has no " + step.type + ":" + std::to_string(beyond) + "; it has " +
                   step.type + ":0" +
                   (width > 1 ? std::string("-").append(std::to_string(width - 1)) : ""));
    }
    for (std::size_t i = 0; i < count; ++i) {
      found.push_back((range.first + i * range.step) % width);
    }
    return found;
  }

  const PlaceTopology& topology_;
  const Parser& parser_;
};

// Object types have only letters and digits; the next character tells a place from a command.
std::size_t type_length(std::string_view text) {
  return static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), is_alnum) -
                                  text.begin());
}

bool is_hex_list(std::string_view text) {
  const std::string small = lower(text);
  if (small.starts_with("0xf...f")) {
    return true;
  }
  return small.starts_with("0x") ||
         (text.find(',') != std::string_view::npos &&
          small.find_first_not_of("0123456789abcdefx,") == std::string::npos);
}

// Returns the prefix operator of a place, or 0. No type name begins with an operator.
char take_operator(std::string_view& text) {
  if (text.empty() || kOperators.find(text.front()) == std::string_view::npos) {
    return '\0';
  }
  const char found = text.front();
  text.remove_prefix(1);
  return found;
}

std::vector<Step> steps_of(const Parser& parser, std::string_view text) {
  const std::size_t length = type_length(text);
  if (length > 0 && length < text.size() && (text[length] == '=' || text[length] == '[')) {
    parser.fail("devices are not places; choose from " + std::string(kLevelNames));
  }
  return parser.chain(text);
}

bool is_everything(std::string_view text) { return text == "all" || text == "root"; }

CpuSet resolve_one(const PlaceTopology& topology, std::string_view place, std::string_view text) {
  const Parser parser(place);
  if (is_everything(text)) {
    return topology.usable;
  }
  if (is_hex_list(text)) {
    CpuSet everything = topology.usable;
    for (const Object& machine : topology[Level::kMachine]) {
      everything |= machine.cpus;
    }
    return parser.cpu_set(text, everything.end_index());
  }
  const std::vector<Step> steps = steps_of(parser, text);
  for (const Step& step : steps) {
    if (topology[step.level].empty()) {
      parser.fail("this machine has no " + step.type +
                  (step.level == Level::kChiplet
                       ? " that the system reports; describe it with --machine FILE"
                       : ""));
    }
  }
  return Resolver(topology, parser).cpus(steps, nullptr);
}

}  // namespace

bool looks_like_place(std::string_view operand) {
  take_operator(operand);
  if (is_everything(operand) || is_hex_list(operand)) {
    return true;
  }
  const std::size_t length = type_length(operand);
  return length > 0 && length < operand.size() &&
         std::string_view(":=[").find(operand[length]) != std::string_view::npos;
}

std::vector<Level> levels_of(std::span<const std::string> places) {
  std::vector<Level> levels;
  for (const std::string& place : places) {
    std::string_view text = place;
    take_operator(text);
    if (is_everything(text) || is_hex_list(text)) {
      continue;
    }
    for (const Step& step : steps_of(Parser(place), text)) {
      levels.push_back(step.level);
    }
  }
  return levels;
}

CpuSet resolve_places(const PlaceTopology& topology, std::span<const std::string> places) {
  CpuSet result;
  for (const std::string& place : places) {
    std::string_view text = place;
    const char operation = take_operator(text);
    const CpuSet cpus = resolve_one(topology, place, text);
    switch (operation) {
      case '~': result -= cpus; break;
      case 'x': result &= cpus; break;
      case '^': result ^= cpus; break;
      default: result |= cpus; break;
    }
  }
  return result;
}

}  // namespace atl::exec
