// The grammar of synthetic_places (places.hpp): LEVEL:COUNT[,COUNT...], levels from wide to narrow.
#include <algorithm>
#include <array>
#include <charconv>
#include <string>

#include "atoll/runtime/places.hpp"
#include "build.hpp"

namespace atl {
namespace {

enum Level : std::size_t { kPackage, kNode, kChiplet, kCore, kPu, kLevels };
constexpr std::array<std::string_view, kLevels> kNames{"package", "node", "chiplet", "core", "pu"};
constexpr int kMostPus = 8;  // per core; POWER has the most

struct Item {
  std::vector<int> counts;  // one for all, or one for each parent
  std::size_t column = 0;   // 0-based, of its first count
};

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  std::array<Item, kLevels> items() {
    std::array<Item, kLevels> found;
    found.fill(Item{{1}, 0});
    std::size_t next = 0;  // the first level that may follow
    bool has_core = false;
    for (skip_blanks(); at_ < text_.size(); skip_blanks()) {
      const std::size_t start = at_;
      const std::string_view name = word();
      const auto level = static_cast<std::size_t>(std::ranges::find(kNames, name) - kNames.begin());
      if (level == kLevels) fail(start, "a level is package, node, chiplet, core or pu");
      if (level < next) fail(start, "levels come in the order package node chiplet core pu, once");
      if (at_ >= text_.size() || text_[at_] != ':') fail(at_, "':' and a count must follow");
      found[level] = counts(level);
      next = level + 1;
      has_core = has_core || level == kCore;
    }
    if (!has_core) fail(text_.size(), "core:COUNT is missing");
    return found;
  }

  [[noreturn]] void fail(std::size_t at, const std::string& why) const {
    throw RuntimeFault("synthetic places: column " + std::to_string(at + 1) + ": " + why);
  }

 private:
  void skip_blanks() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }

  std::string_view word() {
    const std::size_t start = at_;
    while (at_ < text_.size() && text_[at_] >= 'a' && text_[at_] <= 'z') ++at_;
    return text_.substr(start, at_ - start);
  }

  Item counts(std::size_t level) {
    const int most = level == kPu ? kMostPus : runtime::kMostCores;
    Item item{{}, at_ + 1};
    do {
      ++at_;  // ':' or ','
      int count = 0;
      const char* const begin = text_.data() + at_;
      const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), count);
      if (error != std::errc() || count < 1 || count > most) {
        fail(at_, "a count is a number from 1 to " + std::to_string(most));
      }
      item.counts.push_back(count);
      at_ += static_cast<std::size_t>(end - begin);
    } while (at_ < text_.size() && text_[at_] == ',');
    if (at_ < text_.size() && text_[at_] != ' ') fail(at_, "a blank, ',' or the end must follow");
    return item;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

Places synthetic_places(std::string_view text, const std::vector<int>& real_cpus) {
  for (const int cpu : real_cpus) {
    if (cpu < 0 || cpu > runtime::kMostCpu) {
      throw RuntimeFault("synthetic places: there is no CPU " + std::to_string(cpu));
    }
  }
  Parser parser(text);
  const std::array<Item, kLevels> items = parser.items();
  // Level by level: for each object of a level, the index of its parent.
  std::array<std::vector<int>, kLevels> above;
  std::size_t parents = 1;  // the machine
  for (std::size_t level = 0; level < kLevels; ++level) {
    const std::vector<int>& counts = items[level].counts;
    if (counts.size() != 1 && counts.size() != parents) {
      parser.fail(items[level].column, std::to_string(counts.size()) + " counts for " +
                                           std::to_string(parents) +
                                           " parents; give one count, or one for each");
    }
    for (std::size_t parent = 0; parent < parents; ++parent) {
      const int count = counts[counts.size() == 1 ? 0 : parent];
      above[level].insert(above[level].end(), static_cast<std::size_t>(count),
                          static_cast<int>(parent));
      if (level != kPu && above[level].size() > static_cast<std::size_t>(runtime::kMostCores)) {
        parser.fail(items[level].column,
                    "this makes more than " + std::to_string(runtime::kMostCores) + " objects");
      }
    }
    parents = above[level].size();
  }

  std::vector<runtime::RawCore> cores;
  for (const int chiplet : above[kCore]) {
    const int node = above[kChiplet][static_cast<std::size_t>(chiplet)];
    const int package = above[kNode][static_cast<std::size_t>(node)];
    cores.push_back({{}, package, node, chiplet});
  }
  for (std::size_t pu = 0; pu < above[kPu].size(); ++pu) {
    const int cpu = real_cpus.empty() ? static_cast<int>(pu) : real_cpus[pu % real_cpus.size()];
    cores[static_cast<std::size_t>(above[kPu][pu])].cpus.push_back(cpu);
  }
  Places places = runtime::build_places(cores);
  places.made_up = true;
  return places;
}

}  // namespace atl
