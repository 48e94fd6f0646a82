#include "graph/read.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "graph/mapped_file.hpp"
#include "graph/serialized.hpp"
#include "workload.hpp"

namespace atl::kernels {
namespace {

constexpr std::uint64_t kMostVertices = kNone;  // which is no vertex

// What is wrong with a line.
struct LineFault {
  std::string why;
};

bool is_blank(char character) { return character == ' ' || character == '\t' || character == '\r'; }

// The fields of a line.
class Fields {
 public:
  explicit Fields(std::string_view line) : at_(line.data()), end_(line.data() + line.size()) {}

  // Digits up to a blank; what does not fit is the largest number.
  std::optional<std::uint64_t> number() {
    skip_blanks();
    std::uint64_t value = 0;
    const char* at = at_;
    for (; at != end_ && *at >= '0' && *at <= '9'; ++at) {
      const auto digit = static_cast<std::uint64_t>(*at - '0');
      constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
      value = value > (kMost - digit) / 10 ? kMost : value * 10 + digit;
    }
    if (at == at_ || (at != end_ && !is_blank(*at))) return std::nullopt;
    at_ = at;
    return value;
  }
  std::string_view word() {
    skip_blanks();
    const char* const begin = at_;
    while (at_ != end_ && !is_blank(*at_)) ++at_;
    return {begin, static_cast<std::size_t>(at_ - begin)};
  }
  bool at_end() {
    skip_blanks();
    return at_ == end_;
  }

 private:
  void skip_blanks() {
    while (at_ != end_ && is_blank(*at_)) ++at_;
  }
  const char* at_;
  const char* end_;
};

// A word of the file in a message: not too long, and no control characters.
std::string shown(std::string_view word) {
  std::string text(word.substr(0, 40));
  for (char& character : text) {
    if (character < ' ' || character > '~') character = '?';
  }
  return text;
}

Weight weight_from(std::string_view word) {
  double value = 0;
  const auto [end, fault] = std::from_chars(word.data(), word.data() + word.size(), value);
  constexpr double kMost = std::numeric_limits<Weight>::max();
  if (fault != std::errc() || end != word.data() + word.size() ||
      !(value >= 1 && value <= kMost && value == std::floor(value))) {
    throw LineFault{"weight '" + shown(word) + "' is not a whole number from 1 to 2147483647"};
  }
  return static_cast<Weight>(value);
}

void check_value(std::string_view word) {
  double value = 0;
  const auto [end, fault] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (fault == std::errc() && end == word.data() + word.size() && std::isfinite(value)) return;
  throw LineFault{"value '" + shown(word) + "' is not a number"};
}

struct Format {
  enum class Third { kNone, kWeight, kValue } third = Third::kNone;
  std::uint64_t base = 0;  // the first vertex
  std::uint64_t vertices = kMostVertices;
};

struct Entry {
  Edge edge;
  Weight weight = 0;
};

Vertex vertex_from(std::uint64_t number, const Format& format) {
  if (number - format.base < format.vertices) return static_cast<Vertex>(number - format.base);
  const bool saturated = number == std::numeric_limits<std::uint64_t>::max();
  throw LineFault{"vertex " + std::to_string(number) + (saturated ? " or more" : "") +
                  " is not from " + std::to_string(format.base) + " to " +
                  std::to_string(format.vertices - 1 + format.base)};
}

Entry entry_from(std::string_view line, const Format& format, bool weights) {
  Fields fields(line);
  const std::optional<std::uint64_t> from = fields.number();
  const std::optional<std::uint64_t> to = from ? fields.number() : std::nullopt;
  if (!to) throw LineFault{"'" + shown(line) + "' does not begin with two vertices"};
  Entry entry{{vertex_from(*from, format), vertex_from(*to, format)}};
  if (format.third != Format::Third::kNone) {
    const std::string_view third = fields.word();
    if (third.empty()) throw LineFault{"no number follows the two vertices"};
    if (weights || format.third == Format::Third::kWeight) {
      entry.weight = weight_from(third);
    } else {
      check_value(third);
    }
  }
  if (!fields.at_end()) throw LineFault{"'" + shown(fields.word()) + "' is too much on the line"};
  return entry;
}

// Lines with edges: not blank, no comment.
bool has_edge(std::string_view line) {
  std::size_t at = 0;
  while (at < line.size() && is_blank(line[at])) ++at;
  return at < line.size() && line[at] != '#' && line[at] != '%';
}

// The line at `at`, and past its end.
std::string_view next_line(std::string_view text, std::size_t& at) {
  const std::size_t end = std::min(text.find('\n', at), text.size());
  const std::string_view line = text.substr(at, end - at);
  at = std::min(end + 1, text.size());
  return line;
}

// Text in parts of whole lines.
class Parts {
 public:
  explicit Parts(std::string_view text) : text_(text) {}

  [[nodiscard]] std::size_t count() const { return (text_.size() + kPart - 1) / kPart; }
  // Calls use(line, offset) for each line with an edge that begins in part `number`.
  template <class Use>
  void lines(std::size_t number, Use&& use) const {
    std::size_t at = number * kPart;
    const std::size_t end = std::min(text_.size(), (number + 1) * kPart);
    if (at > 0) {  // looks no further than the part, as a line may be as long as the file
      const std::size_t newline = text_.substr(0, end).find('\n', at - 1);
      if (newline == text_.npos) return;
      at = newline + 1;
    }
    while (at < end) {
      const std::size_t begin = at;
      const std::string_view line = next_line(text_, at);
      if (has_edge(line)) use(line, begin);
    }
  }

 private:
  static constexpr std::size_t kPart = 1 << 20;
  std::string_view text_;
};

[[noreturn]] void fail_at(const std::string& path, std::string_view text, std::size_t offset,
                          const std::string& why) {
  const auto line =
      1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(offset), '\n');
  throw UsageFault(path + ":" + std::to_string(line) + ": " + why);
}

struct Text {
  std::string_view all;
  std::size_t begin = 0;  // of the lines with edges
  Format format = {};
  bool symmetric = false;
  std::optional<std::uint64_t> edges = {};  // as the header says
};

EdgeList parse(Team& team, const Memory& memory, const std::string& path, const Text& text,
               const ReadOptions& options) {
  const Parts parts(text.all.substr(text.begin));
  std::vector<std::uint64_t> at(parts.count());
  team.loop(parts.count(), 1, [&](std::size_t first, std::size_t last) {
    for (std::size_t part = first; part < last; ++part) {
      std::uint64_t count = 0;
      parts.lines(part, [&](std::string_view, std::size_t) { ++count; });
      at[part] = count;
    }
  });
  std::uint64_t edges = 0;
  for (std::uint64_t& count : at) edges += std::exchange(count, edges);
  if (text.edges && *text.edges != edges) {
    throw UsageFault(path + ": its header says " + std::to_string(*text.edges) +
                     " entries, and there are " + std::to_string(edges));
  }
  const std::uint64_t stated = text.edges ? text.format.vertices : 0;
  options.before(edges, 2 * edges, stated);
  EdgeList list{0, make_array<Edge>(memory, edges), {}, text.symmetric};
  const bool weights = options.weights && text.format.third != Format::Third::kNone;
  if (weights) list.weights.emplace(make_array<Weight>(memory, edges));

  std::atomic<Vertex> largest{0};
  std::mutex mutex;  // guards what follows
  std::size_t fault_at = text.all.size();
  std::string fault;
  team.loop(parts.count(), 1, [&](std::size_t first, std::size_t last) {
    Vertex most = 0;
    for (std::size_t part = first; part < last; ++part) {
      std::uint64_t edge = at[part];
      std::size_t offset = 0;
      try {
        parts.lines(part, [&](std::string_view line, std::size_t begin) {
          offset = begin;
          const Entry entry = entry_from(line, text.format, weights);
          most = std::max({most, entry.edge.from, entry.edge.to});
          list.edges[edge] = entry.edge;
          if (weights) (*list.weights)[edge] = entry.weight;
          ++edge;
        });
      } catch (const LineFault& found) {
        const std::lock_guard lock(mutex);
        if (text.begin + offset < fault_at) {
          fault_at = text.begin + offset;
          fault = found.why;
        }
      }
    }
    Vertex before = largest.load(std::memory_order_relaxed);  // read after the loop
    while (before < most &&
           !largest.compare_exchange_weak(before, most, std::memory_order_relaxed)) {
    }
  });
  if (!fault.empty()) fail_at(path, text.all, fault_at, fault);
  list.vertices = text.edges ? static_cast<Vertex>(stated) : largest + (edges > 0 ? 1 : 0);
  return list;
}

bool same_word(std::string_view word, std::string_view lower) {
  return std::equal(word.begin(), word.end(), lower.begin(), lower.end(),
                    [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b; });
}

// The head of Matrix Market's exchange formats (Boisvert, Pozo and Remington, NISTIR 5935, 1996).
Text matrix_market(const std::string& path, std::string_view all) {
  Text text{all};
  Fields head(next_line(all, text.begin));
  const auto is = [&](std::string_view lower) { return same_word(head.word(), lower); };
  if (!is("%%matrixmarket") || !is("matrix") || !is("coordinate")) {
    fail_at(path, all, 0, "not '%%MatrixMarket matrix coordinate'");
  }
  const std::string_view field = head.word();
  const std::string_view symmetry = head.word();
  if (same_word(field, "integer") || same_word(field, "real")) {
    text.format.third = Format::Third::kValue;
  } else if (!same_word(field, "pattern")) {
    fail_at(path, all, 0, "field '" + shown(field) + "' is not pattern, integer or real");
  }
  text.symmetric = same_word(symmetry, "symmetric");
  if (!text.symmetric && !same_word(symmetry, "general")) {
    fail_at(path, all, 0, "symmetry '" + shown(symmetry) + "' is not general or symmetric");
  }
  while (text.begin < all.size()) {
    const std::size_t begin = text.begin;
    const std::string_view line = next_line(all, text.begin);
    if (!has_edge(line)) continue;
    Fields sizes(line);
    const auto rows = sizes.number();
    const auto columns = rows ? sizes.number() : std::nullopt;
    text.edges = columns ? sizes.number() : std::nullopt;
    if (!text.edges || !sizes.at_end()) {
      fail_at(path, all, begin, "not the numbers of rows, columns and entries");
    }
    if (*rows != *columns) fail_at(path, all, begin, "the matrix is not square");
    if (*rows > kMostVertices) {
      fail_at(path, all, begin, std::to_string(*rows) + " vertices are more than 4294967295");
    }
    text.format.base = 1;
    text.format.vertices = *rows;
    return text;
  }
  throw UsageFault(path + ": ends before its numbers of rows, columns and entries");
}

bool ends_with(const std::string& path, std::string_view ending) {
  return std::string_view(path).ends_with(ending);
}

}  // namespace

bool is_graph_file(const std::string& path) {
  constexpr std::string_view kEndings[] = {".el", ".wel", ".mtx", ".sg", ".wsg"};
  return std::any_of(std::begin(kEndings), std::end(kEndings),
                     [&](std::string_view ending) { return ends_with(path, ending); });
}

EdgeList edges_from(Team& team, const Memory& memory, const std::string& path,
                    std::string_view bytes, const ReadOptions& options) {
  if (ends_with(path, ".sg") || ends_with(path, ".wsg")) {
    return read_serialized(team, memory, path, bytes, options);
  }
  Text text{bytes};
  if (ends_with(path, ".mtx")) text = matrix_market(path, bytes);
  if (ends_with(path, ".wel")) text.format.third = Format::Third::kWeight;
  return parse(team, memory, path, text, options);
}

EdgeList read_edges(Team& team, const Memory& memory, const std::string& path,
                    const ReadOptions& options) {
  return edges_from(team, memory, path, MappedFile(path).text(), options);
}

}  // namespace atl::kernels
