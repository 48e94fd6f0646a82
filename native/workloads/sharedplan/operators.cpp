#include "operators.hpp"

#include <algorithm>
#include <stdexcept>

#include "scan.hpp"

namespace atl::sharedplan {
namespace {

std::size_t place_of(const Outputs& columns, const std::string& name) {
  for (std::size_t at = 0; at < columns.size(); ++at) {
    if (columns[at].name == name) return at;
  }
  throw std::logic_error("no input has the column " + name);
}

bool has(const Outputs& columns, const std::string& name) {
  return std::any_of(columns.begin(), columns.end(),
                     [&](const Output& each) { return each.name == name; });
}

// Filter and lookup: each row of the inputs, one after the other.
class Each : public Operator {
 public:
  // `differ`: columns of which two must differ, or none. `key`: of the row of a table that some
  // columns are of.
  Each(std::vector<Source> columns, std::vector<std::size_t> differ, std::size_t key)
      : columns_(std::move(columns)), differ_(std::move(differ)), key_(key) {}

  void work(std::span<const BatchPointer> inputs, const QuerySet& mine, Batch& out) override {
    for (const BatchPointer& input : inputs) {
      for (std::size_t at = 0; at < input->size(); ++at) {
        const std::uint32_t* const row = input->row(at);
        const QuerySet set = input->sets[at] & mine;
        if (set.empty() || (!differ_.empty() && row[differ_[0]] == row[differ_[1]])) continue;
        std::uint32_t* given = out.append(set);
        for (const Source& source : columns_) *given++ = source.of(row, row[key_] - 1);
      }
    }
    const auto of_table = std::count_if(columns_.begin(), columns_.end(),
                                        [](const Source& each) { return each.table != nullptr; });
    table_bytes_ = out.size() * static_cast<std::size_t>(of_table) * sizeof(std::uint32_t);
  }

 private:
  std::vector<Source> columns_;
  std::vector<std::size_t> differ_;
  std::size_t key_;
};

class Unnest : public Operator {
 public:
  explicit Unnest(std::vector<std::size_t> columns) : columns_(std::move(columns)) {}

  void work(std::span<const BatchPointer> inputs, const QuerySet& mine, Batch& out) override {
    const Batch& input = *inputs[0];
    for (std::size_t at = 0; at < input.size(); ++at) {
      const QuerySet set = input.sets[at] & mine;
      if (set.empty()) continue;
      for (const std::size_t column : columns_) *out.append(set) = input.row(at)[column];
    }
  }

 private:
  std::vector<std::size_t> columns_;
};

class Join : public Operator {
 public:
  // The other side is a table, with `rows`, if `other_key` is a column of one.
  Join(std::size_t key, Source other_key, std::uint32_t rows, std::vector<Source> columns,
       Memory memory)
      : key_(key),
        other_key_(other_key),
        rows_(rows),
        columns_(std::move(columns)),
        index_(memory),
        from_(memory) {}

  void work(std::span<const BatchPointer> inputs, const QuerySet& mine, Batch& out) override {
    const Batch& first = *inputs[0];
    index_.clear(first.size());
    from_.clear();
    for (std::size_t at = 0; at < first.size(); ++at) {
      if ((first.sets[at] & mine).empty()) continue;
      index_.add(first.row(at)[key_]);
      from_.push_back(static_cast<std::uint32_t>(at));
    }
    table_bytes_ = 0;
    if (index_.empty()) return;
    if (other_key_.table != nullptr) {
      for (std::uint32_t row = 0; row < rows_; ++row) {
        probe(first, other_key_.table[row], mine, nullptr, row, out);
      }
      table_bytes_ = std::uint64_t{rows_} * sizeof(std::uint32_t) + out.bytes();
      return;
    }
    const Batch& other = *inputs[1];
    for (std::size_t at = 0; at < other.size(); ++at) {
      const QuerySet set = other.sets[at] & mine;
      if (!set.empty()) probe(first, other.row(at)[other_key_.at], set, other.row(at), 0, out);
    }
  }

  std::uint64_t own_bytes() const override { return index_.bytes() + bytes_of(from_); }

 private:
  void probe(const Batch& first, std::uint32_t key, const QuerySet& wanted,
             const std::uint32_t* row, std::size_t table_row, Batch& out) {
    index_.each(key, [&](std::uint32_t found) {
      const QuerySet set = first.sets[from_[found]] & wanted;
      if (set.empty()) return;
      const std::uint32_t* const own = first.row(from_[found]);
      std::uint32_t* given = out.append(set);
      for (const Source& source : columns_) *given++ = source.of(own, table_row, row);
    });
  }

  std::size_t key_;
  Source other_key_;
  std::uint32_t rows_;
  std::vector<Source> columns_;
  Index index_;
  List<std::uint32_t> from_;  // the first input's row of each entry
};

// A row is looked up once for each query that wants it.
class Group : public Operator {
 public:
  Group(std::size_t key, std::size_t value, std::vector<Source> columns, Memory memory)
      : key_(key), value_(value), columns_(std::move(columns)), index_(memory) {}

  void work(std::span<const BatchPointer> inputs, const QuerySet& mine, Batch& out) override {
    const Batch& input = *inputs[0];
    index_.clear(input.size());
    for (std::size_t at = 0; at < input.size(); ++at) {
      const std::uint32_t* const row = input.row(at);
      (input.sets[at] & mine).each([&](std::size_t query) {
        std::uint32_t found =
            index_.find(row[key_], [&](std::uint32_t group) { return out.sets[group].has(query); });
        if (found == kNothing) {
          found = index_.add(row[key_]);
          QuerySet only;
          only.add(query);
          std::uint32_t* given = out.append(only);
          for (const Source& source : columns_) *given++ = row[source.at];
        }
        out.values[(found + 1) * out.width - 1] += row[value_];
      });
    }
  }

  std::uint64_t own_bytes() const override { return index_.bytes(); }

 private:
  std::size_t key_, value_;
  std::vector<Source> columns_;  // without the sum, which is last
  Index index_;                  // of the rows given
};

class Top : public Operator {
 public:
  struct By {
    std::size_t at;
    bool descending;
  };
  Top(std::size_t most, std::vector<By> order, std::vector<Source> columns, Memory memory)
      : most_(most), order_(std::move(order)), columns_(std::move(columns)), sorted_(memory) {}

  void work(std::span<const BatchPointer> inputs, const QuerySet& mine, Batch& out) override {
    const Batch& input = *inputs[0];
    sorted_.clear();
    for (std::uint32_t at = 0; at < input.size(); ++at) {
      if (!(input.sets[at] & mine).empty()) sorted_.push_back(at);
    }
    std::sort(sorted_.begin(), sorted_.end(), [&](std::uint32_t one, std::uint32_t other) {
      for (const By& by : order_) {
        const std::uint32_t left = input.row(one)[by.at];
        const std::uint32_t right = input.row(other)[by.at];
        if (left != right) return (left < right) != by.descending;
      }
      return one < other;
    });
    QuerySet wanting = mine;
    std::array<std::size_t, kMostQueries> given_to{};
    for (const std::uint32_t at : sorted_) {
      const QuerySet set = input.sets[at] & wanting;
      if (set.empty()) continue;
      std::uint32_t* given = out.append(set);
      for (const Source& source : columns_) *given++ = input.row(at)[source.at];
      set.each([&](std::size_t query) {
        if (++given_to[query] == most_) wanting.remove(query);
      });
      if (wanting.empty()) return;
    }
  }

  std::uint64_t own_bytes() const override { return bytes_of(sorted_); }

 private:
  std::size_t most_;
  std::vector<By> order_;
  std::vector<Source> columns_;
  List<std::uint32_t> sorted_;
};

}  // namespace

Made make_operator(const Spec& spec, const Tables& tables, std::span<const Outputs> inputs,
                   Memory memory) {
  const Words& arguments = spec.arguments;
  const Table* table = nullptr;
  if (spec.kind == Kind::kScan || spec.kind == Kind::kLookup) table = &tables[arguments[0]];
  if (spec.kind == Kind::kJoin && arguments.size() > 2) table = &tables[arguments[2]];

  Made made;
  std::vector<Source> sources;
  for (const std::string& word : spec.columns) {
    const std::size_t equals = word.find('=');
    std::string old = equals == word.npos ? word : word.substr(equals + 1);
    const bool only_other = old.starts_with("other.");
    if (only_other) old = old.substr(6);
    Output& output = made.outputs.emplace_back(Output{word.substr(0, equals), Type::kNumber});
    const auto take = [&](const Outputs& input, bool other) {
      sources.push_back({place_of(input, old), nullptr, other});
      output.type = input[sources.back().at].type;
    };
    if (!only_other && !inputs.empty() && has(inputs[0], old)) {
      take(inputs[0], false);
    } else if (table != nullptr) {
      const Column& column = table->column(old);
      sources.push_back({0, column.values.data()});
      output.type = column.type;
    } else if (spec.kind != Kind::kGroup && spec.kind != Kind::kUnnest) {
      take(inputs.back(), true);
    }
  }
  const auto places = [&](std::size_t from) {
    std::vector<std::size_t> all;
    for (; from < arguments.size(); ++from) all.push_back(place_of(inputs[0], arguments[from]));
    return all;
  };

  switch (spec.kind) {
    case Kind::kScan:
      made.work = std::make_unique<Scan>(*table, spec.id, std::move(sources), memory);
      break;
    case Kind::kFilter:
    case Kind::kUnion: made.work = std::make_unique<Each>(std::move(sources), places(0), 0); break;
    case Kind::kUnnest: made.work = std::make_unique<Unnest>(places(0)); break;
    case Kind::kLookup:
      made.work =
          std::make_unique<Each>(std::move(sources), std::vector<std::size_t>{}, places(1)[0]);
      break;
    case Kind::kJoin: {
      const Source other = table != nullptr ? Source{0, table->column(arguments[1]).values.data()}
                                            : Source{place_of(inputs[1], arguments[1])};
      made.work =
          std::make_unique<Join>(place_of(inputs[0], arguments[0]), other,
                                 table != nullptr ? table->rows : 0, std::move(sources), memory);
      break;
    }
    case Kind::kGroup:
      made.work = std::make_unique<Group>(places(0)[0], places(0)[1], std::move(sources), memory);
      break;
    case Kind::kTop: {
      std::vector<Top::By> order;
      for (std::size_t at = 1; at < arguments.size(); ++at) {
        const bool descending = arguments[at].starts_with('-');
        order.push_back(
            {place_of(inputs[0], arguments[at].substr(descending ? 1 : 0)), descending});
      }
      const std::size_t most = arguments[0] == "all" ? SIZE_MAX : std::stoul(arguments[0]);
      made.work = std::make_unique<Top>(most, std::move(order), std::move(sources), memory);
      break;
    }
  }
  return made;
}

}  // namespace atl::sharedplan
