// Each kind of operator by itself, on rows and query sets written out here.
#include "operators.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace atl::sharedplan {
namespace {

using Row = std::vector<std::uint32_t>;
using Given = std::vector<std::pair<Row, std::set<std::size_t>>>;  // rows and their queries

constexpr double kSmallest = 1e-5;

const Tables& tables() {
  static const Tables made(kSmallest, 1, [](const std::string&, std::size_t rows) {
    return Array<std::uint32_t>::local(rows);
  });
  return made;
}

QuerySet set_of(const std::set<std::size_t>& queries) {
  QuerySet made;
  for (const std::size_t query : queries) made.add(query);
  return made;
}

QuerySet everybody() {
  QuerySet made;
  for (std::size_t query = 0; query < kMostQueries; ++query) made.add(query);
  return made;
}

Outputs columns(const std::vector<std::string>& names) {
  Outputs made;
  for (const std::string& name : names) made.push_back({name, Type::kNumber});
  return made;
}

BatchPointer batch_of(const Given& rows, std::size_t width) {
  auto batch = std::make_shared<Batch>(width, std::pmr::new_delete_resource());
  for (const auto& [row, queries] : rows) {
    std::copy(row.begin(), row.end(), batch->append(set_of(queries)));
  }
  return batch;
}

Given given_by(const Spec& spec, const std::vector<Outputs>& inputs,
               const std::vector<BatchPointer>& batches, const QuerySet& mine = everybody()) {
  Made made = make_operator(spec, tables(), inputs, std::pmr::new_delete_resource());
  Batch out(made.outputs.size(), std::pmr::new_delete_resource());
  // Twice, since operators keep their structures from cycle to cycle.
  for (int cycle = 0; cycle < 2; ++cycle) {
    out.values.clear();
    out.sets.clear();
    made.work->work(batches, mine, out);
  }
  Given rows;
  for (std::size_t at = 0; at < out.size(); ++at) {
    std::set<std::size_t> queries;
    out.sets[at].each([&](std::size_t query) { queries.insert(query); });
    rows.push_back({Row(out.row(at), out.row(at) + out.width), queries});
  }
  return rows;
}

TEST(QuerySet, HoldsAnyOfTheQueries) {
  QuerySet set = set_of({0, 63, 64, 255});
  EXPECT_TRUE(set.has(255) && set.has(64) && !set.has(65));
  EXPECT_EQ(set & set_of({64, 65}), set_of({64}));
  set.remove(64);
  std::vector<std::size_t> seen;
  set.each([&](std::size_t query) { seen.push_back(query); });
  EXPECT_EQ(seen, (std::vector<std::size_t>{0, 63, 255}));
  EXPECT_TRUE((set & set_of({1, 64})).empty());
}

TEST(Filter, KeepsRowsThatItsQueriesWantAndColumnsThatDiffer) {
  const Spec spec{"f", Kind::kFilter, {}, {"x"}, {"a", "b"}, {"b"}};
  const BatchPointer input =
      batch_of({{{1, 2}, {0, 1}}, {{3, 3}, {0}}, {{4, 5}, {2}}, {{6, 7}, {1, 2}}}, 2);
  EXPECT_EQ(given_by(spec, {columns({"a", "b"})}, {input}, set_of({0, 1})),
            (Given{{{2}, {0, 1}}, {{7}, {1}}}));
}

TEST(Unnest, GivesARowForEachColumn) {
  const Spec spec{"u", Kind::kUnnest, {}, {"x"}, {"c", "a"}, {"one"}};
  const BatchPointer input = batch_of({{{1, 2, 3}, {4}}}, 3);
  EXPECT_EQ(given_by(spec, {columns({"a", "b", "c"})}, {input}), (Given{{{3}, {4}}, {{1}, {4}}}));
}

TEST(Union, GivesAllRowsOfBoth) {
  const Spec spec{"u", Kind::kUnion, {}, {"x", "y"}, {}, {"a"}};
  EXPECT_EQ(given_by(spec, {columns({"a"}), columns({"a"})},
                     {batch_of({{{1}, {0}}}, 1), batch_of({{{1}, {1}}}, 1)}),
            (Given{{{1}, {0}}, {{1}, {1}}}));
}

TEST(Lookup, FindsTheRowOfTheKey) {
  const Spec spec{"l", Kind::kLookup, {}, {"x"}, {"author", "who"}, {"who", "a_id", "a_lname"}};
  const std::uint32_t name = tables()["author"].column("a_lname").values[16];
  EXPECT_EQ(given_by(spec, {columns({"other", "who"})}, {batch_of({{{9, 17}, {3}}}, 2)}),
            (Given{{{17, 17, name}, {3}}}));
}

TEST(Join, MatchesRowsOfQueriesThatWantBoth) {
  const Spec spec{"j", Kind::kJoin, {}, {"x", "y"}, {"a", "b"}, {"left", "right"}};
  const BatchPointer first =
      batch_of({{{1, 10}, {0, 1}}, {{1, 11}, {1}}, {{2, 12}, {0}}, {{4, 13}, {0, 1, 2}}}, 2);
  const BatchPointer other = batch_of({{{1, 20}, {1, 2}}, {{2, 21}, {1}}, {{3, 22}, {0}}}, 2);
  Given rows = given_by(spec, {columns({"a", "left"}), columns({"b", "right"})}, {first, other});
  std::sort(rows.begin(), rows.end());
  EXPECT_EQ(rows, (Given{{{10, 20}, {1}}, {{11, 20}, {1}}}));
}

TEST(Join, OfATableFindsAllItsRows) {
  const Spec spec{"j", Kind::kJoin, {}, {"x"}, {"o", "ol_o_id", "order_line"}, {"o", "ol_qty"}};
  const Array<std::uint32_t>& quantities = tables()["order_line"].column("ol_qty").values;
  // The fifth order has five lines, which follow ten of the four before.
  Given wanted;
  for (std::size_t row = 10; row < 15; ++row) wanted.push_back({{5, quantities[row]}, {7}});
  EXPECT_EQ(given_by(spec, {columns({"o"})}, {batch_of({{{5}, {7}}, {{1'000'000}, {8}}}, 1)}),
            wanted);
}

TEST(Group, AddsUpForEachQuery) {
  const Spec spec{"g", Kind::kGroup, {}, {"x"}, {"k", "v"}, {"name", "k", "sum"}};
  const BatchPointer input = batch_of({{{1, 10, 100}, {0, 1}},
                                       {{1, 20, 100}, {1, 200}},
                                       {{2, 40, 200}, {0}},
                                       {{1, 80, 100}, {0, 1}},
                                       {{2, 1, 200}, {5}}},
                                      3);
  std::map<std::pair<std::size_t, std::uint32_t>, Row> found;
  for (const auto& [row, queries] :
       given_by(spec, {columns({"k", "v", "name"})}, {input}, set_of({0, 1, 200}))) {
    ASSERT_EQ(queries.size(), 1U);
    EXPECT_TRUE(found.emplace(std::pair(*queries.begin(), row[1]), row).second);
  }
  EXPECT_EQ(found,
            (std::map<std::pair<std::size_t, std::uint32_t>, Row>{{{0, 1}, {100, 1, 90}},
                                                                  {{0, 2}, {200, 2, 40}},
                                                                  {{1, 1}, {100, 1, 110}},
                                                                  {{200, 1}, {100, 1, 20}}}));
}

TEST(Top, GivesEachQueryItsFirstRows) {
  const Spec spec{"t", Kind::kTop, {}, {"x"}, {"2", "-a", "b"}, {"b"}};
  const BatchPointer input = batch_of(
      {{{1, 1}, {0}}, {{5, 9}, {0, 1}}, {{5, 3}, {1}}, {{4, 4}, {0, 1}}, {{3, 5}, {0}}}, 2);
  EXPECT_EQ(given_by(spec, {columns({"a", "b"})}, {input}),
            (Given{{{3}, {1}}, {{9}, {0, 1}}, {{4}, {0}}}));
}

TEST(Scan, GivesEachRowTheQueriesWhosePredicatesItMeets) {
  const Spec& spec = plan()[0];
  ASSERT_EQ(spec.id, "scan_item");
  std::vector<std::shared_ptr<Query>> queries;
  for (std::size_t at = 0; at < 100; ++at) {
    queries.push_back(
        std::make_shared<Query>(at % interactions().size(), draw_parameters(tables(), at)));
  }
  Made made = make_operator(spec, tables(), {}, std::pmr::new_delete_resource());
  Batch out(made.outputs.size(), std::pmr::new_delete_resource());
  out.cycle = std::make_shared<Cycle>(queries, [](const auto&) {});
  made.work->work({}, everybody(), out);

  std::size_t at = 0;
  const auto value = [&](const char* name, std::uint32_t row) {
    return tables()["item"].column(name).values[row];
  };
  for (std::uint32_t row = 0; row < tables()["item"].rows; ++row) {
    QuerySet wanting;
    for (std::size_t query = 0; query < queries.size(); ++query) {
      const Query& asked = *queries[query];
      for (const Statement statement : asked.statements) {
        const std::uint32_t word = asked.parameter(Parameter::kWord);
        const std::uint32_t title = value("i_title", row);
        const bool subject = value("i_subject", row) == asked.parameter(Parameter::kSubject);
        bool wants = false;
        switch (statement) {
          case Statement::kRelated:
          case Statement::kDetail: wants = row + 1 == asked.parameter(Parameter::kItem); break;
          case Statement::kNew:
          case Statement::kBest:
          case Statement::kBySubject: wants = subject; break;
          case Statement::kByAuthor: wants = true; break;
          case Statement::kByTitle:
            wants = title >> 20 == word || (title >> 10) % 1024 == word || title % 1024 == word;
            break;
          default: break;
        }
        if (wants) wanting.add(query);
      }
    }
    if (wanting.empty()) continue;
    ASSERT_LT(at, out.size());
    EXPECT_EQ(out.row(at)[0], row + 1);
    EXPECT_EQ(out.sets[at], wanting) << row;
    ++at;
  }
  EXPECT_EQ(at, out.size());
}

TEST(Tables, AreTheSameForTheSameSeedOnly) {
  const auto made = [](std::uint64_t seed) {
    const Tables all(kSmallest, seed, [](const std::string&, std::size_t rows) {
      return Array<std::uint32_t>::local(rows);
    });
    Rows values;
    std::uint64_t bytes = 0;
    for (const Table& table : all.all()) {
      for (const Column& column : table.columns) {
        EXPECT_EQ(column.values.size(), table.rows);
        bytes += 4 * column.values.size();
        values.insert(values.end(), column.values.begin(), column.values.end());
      }
    }
    EXPECT_EQ(bytes, Tables::bytes(kSmallest));
    return values;
  };
  EXPECT_EQ(made(1), made(1));
  EXPECT_NE(made(1), made(2));
}

TEST(Tables, SortTextsAsTheirCodes) {
  for (std::uint32_t word = 1; word < kWords; ++word) {
    EXPECT_LT(text_of(Type::kWord, word - 1), text_of(Type::kWord, word));
  }
  EXPECT_EQ(text_of(Type::kTitle, (33U << 20) + (1U << 10)), "BEBE BABE BABA");
}

TEST(Plan, HasThePostersNumberOfOperators) {
  EXPECT_EQ(plan().size(), 44U);
  double percent = 0;
  for (const Interaction& each : interactions()) percent += each.percent;
  EXPECT_NEAR(percent, 100, 1e-9);
  EXPECT_EQ(interactions().size(), 14U);
}

}  // namespace
}  // namespace atl::sharedplan
