// The scan of a table for all queries of a cycle at once, after ClockScan (Unterbrunner et al.,
// "Predictable Performance for Unpredictable Workloads", PVLDB 2(1), 2009): not the rows but the
// queries are indexed, and each row looks up the queries that want it.
#pragma once

#include "index.hpp"
#include "operators.hpp"

namespace atl::sharedplan {

class Scan : public Operator {
 public:
  Scan(const Table& table, const std::string& id, std::vector<Source> columns, Memory memory)
      : rows_(table.rows), columns_(std::move(columns)) {
    for (const Predicate& each : predicates()) {
      if (id != each.scan) continue;
      const std::uint32_t* column =
          each.match == Predicate::Match::kAll ? nullptr : table.column(each.column).values.data();
      Column* found = nullptr;
      for (Column& known : values_) {
        if (known.data == column) found = &known;
      }
      const bool title = each.match == Predicate::Match::kTitleWord;
      if (found == nullptr) found = &values_.emplace_back(column, title, memory);
      found->predicates.push_back(&each);
    }
  }

  void work(std::span<const BatchPointer>, const QuerySet&, Batch& out) override {
    QuerySet all;
    std::vector<Column*> used;
    for (Column& column : values_) {
      column.prepare(*out.cycle, all, rows_);
      if (!column.index.empty() || !column.recent.empty()) used.push_back(&column);
    }
    table_bytes_ = 0;
    if (used.empty() && all.empty()) return;
    table_bytes_ = std::uint64_t{rows_} * sizeof(std::uint32_t) * used.size();
    for (std::uint32_t row = 0; row < rows_; ++row) {
      QuerySet set = all;
      for (const Column* column : used) column->match(column->data[row], set);
      if (set.empty()) continue;
      std::uint32_t* given = out.append(set);
      for (const Source& source : columns_) *given++ = source.table[row];
    }
    table_bytes_ += out.values.size() * sizeof(std::uint32_t);
  }

  std::uint64_t own_bytes() const override {
    std::uint64_t bytes = 0;
    for (const Column& each : values_) bytes += each.index.bytes() + bytes_of(each.sets);
    return bytes;
  }

 private:
  struct Column {
    Column(const std::uint32_t* data, bool title, Memory memory)
        : data(data), title(title), index(memory), sets(memory) {}

    void prepare(const Cycle& cycle, QuerySet& all, std::uint32_t rows) {
      index.clear(kMostQueries);
      sets.clear();
      recent = {};
      for (const Predicate* each : predicates) {
        const QuerySet& asking = cycle.asking[static_cast<std::size_t>(each->statement)];
        switch (each->match) {
          case Predicate::Match::kAll: all |= asking; break;
          case Predicate::Match::kRecent:
            recent |= asking;
            above = data[rows - 1] - std::min(data[rows - 1], kRecentOrders);
            break;
          default:
            asking.each([&](std::size_t query) {
              const std::uint32_t value = cycle.queries[query]->parameter(each->parameter);
              const std::uint32_t found = index.find(value, [](std::uint32_t) { return true; });
              if (found == kNothing) sets.emplace_back();
              sets[found == kNothing ? index.add(value) : found].add(query);
            });
        }
      }
    }
    void match(std::uint32_t value, QuerySet& set) const {
      const auto add = [&](std::uint32_t at) { set |= sets[at]; };
      if (title) {
        for (const int shift : {0, 10, 20}) index.each(value >> shift & (kWords - 1), add);
      } else {
        index.each(value, add);
      }
      if (value > above) set |= recent;
    }

    const std::uint32_t* data;
    bool title;
    std::vector<const Predicate*> predicates = {};
    Index index;
    List<QuerySet> sets;
    QuerySet recent;
    std::uint32_t above = 0;
  };

  std::uint32_t rows_;
  std::vector<Source> columns_;
  std::vector<Column> values_;
};

}  // namespace atl::sharedplan
