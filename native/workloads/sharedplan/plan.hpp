// The global plan: the 44 operators that all queries share.
//
// After SharedDB (Giannikis, Alonso, Kossmann, PVLDB 5(6), 2012): queries wait for a cycle; each
// operator works once in a cycle, for all of its queries together; a row carries the set of the
// queries that want it. query-plan-deployment-poster deploys such a plan.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "queries.hpp"

namespace atl::sharedplan {

enum class Kind : std::uint8_t {
  kScan,    // of a table, once for the predicates of all queries (Crescando's ClockScan)
  kFilter,  // the rows that some queries want
  kUnnest,  // a row for each of some columns
  kUnion,   // of two inputs with the same columns
  kLookup,  // join with a table by its key, row for row
  kJoin,    // hash join: built of the first input, probed with the second or with a whole table
  kGroup,   // sums by key, for each query
  kTop,     // one sort for all queries, of which each gets its first rows
};

using Words = std::vector<std::string>;

// Columns are named as in the tables; "new=old" renames one. A join's columns are looked for in
// its first input, then on the other side; "other.NAME": only there.
struct Spec {
  std::string id;
  Kind kind;
  Statements statements;  // for whose rows it works; without a taker, it answers them
  Words inputs;           // operators
  // kScan: table. kLookup: table, key of the input. kJoin: key of the first input, of the other
  // side, and the table if it is one. kGroup: key, column to add up. kUnnest: columns. kTop: most
  // rows for a query or "all", columns to sort by ("-": descending). kFilter: two columns that
  // must differ, or nothing.
  Words arguments;
  Words columns;
};

[[nodiscard]] std::span<const Spec> plan();

// What a statement wants of a scan.
struct Predicate {
  Statement statement;
  const char* scan;
  enum class Match : std::uint8_t { kEqual, kTitleWord, kRecent, kAll } match;
  const char* column = "";  // kRecent: above its table's last key - kRecentOrders
  Parameter parameter = Parameter::kItem;
};
[[nodiscard]] std::span<const Predicate> predicates();

[[nodiscard]] const char* name_of(Statement statement);

}  // namespace atl::sharedplan
