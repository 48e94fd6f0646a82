// What clients ask: the 14 interactions of TPC-W (clause 2), by the shares of its browsing mix
// (clause 5.2.1, WIPSb), each as one or two statements that read. Those that write or keep a
// session are reduced to their reads. A cycle is the queries that run together.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "tables.hpp"

namespace atl::sharedplan {

using Clock = std::chrono::steady_clock;

enum class Statement : std::uint8_t {
  kName,     // of a customer
  kRelated,  // the items that an item is related to
  kNew,      // the newest items of a subject
  kBest,     // the items of a subject that sold best in the last orders
  kDetail,   // of an item
  kByTitle,  // items with a word in their title
  kBySubject,
  kByAuthor,
  kCart,        // the items of a cart
  kBuyer,       // a customer with the address
  kOrder,       // a customer's last order with its payment
  kOrderLines,  // and its items
  kAlso,        // what was bought together with an item
};
inline constexpr std::size_t kStatements = 13;
using Statements = std::vector<Statement>;

enum class Parameter : std::uint8_t { kCustomer, kItem, kSubject, kWord, kCart, kSearch };
using Parameters = std::array<std::uint32_t, 6>;  // by Parameter

inline constexpr std::uint32_t kRecentOrders = 3'333;  // that best sellers are counted in

struct Interaction {
  const char* name;
  double percent;
  Statements statements;  // kByTitle: this, by subject or by author, as kSearch says
};
[[nodiscard]] std::span<const Interaction> interactions();

inline constexpr std::size_t kMostQueries = 256;  // in a cycle

// Which queries of a cycle want a row.
class QuerySet {
 public:
  void add(std::size_t query) { words_[query / 64] |= std::uint64_t{1} << query % 64; }
  void remove(std::size_t query) { words_[query / 64] &= ~(std::uint64_t{1} << query % 64); }
  [[nodiscard]] bool has(std::size_t query) const { return words_[query / 64] >> query % 64 & 1; }
  [[nodiscard]] bool empty() const { return (words_[0] | words_[1] | words_[2] | words_[3]) == 0; }
  QuerySet& operator|=(const QuerySet& other) {
    for (std::size_t at = 0; at < words_.size(); ++at) words_[at] |= other.words_[at];
    return *this;
  }
  QuerySet& operator&=(const QuerySet& other) {
    for (std::size_t at = 0; at < words_.size(); ++at) words_[at] &= other.words_[at];
    return *this;
  }
  friend QuerySet operator&(QuerySet one, const QuerySet& other) { return one &= other; }
  bool operator==(const QuerySet&) const = default;
  template <class Call>
  void each(Call&& call) const {
    for (std::size_t at = 0; at < words_.size(); ++at) {
      for (std::uint64_t left = words_[at]; left != 0; left &= left - 1) {
        call(at * 64 + static_cast<std::size_t>(std::countr_zero(left)));
      }
    }
  }

 private:
  std::array<std::uint64_t, kMostQueries / 64> words_{};
};

using Rows = std::vector<std::uint32_t>;  // one row after the other

struct Query {
  Query(std::size_t interaction, const Parameters& parameters);

  [[nodiscard]] std::uint32_t parameter(Parameter which) const {
    return parameters[static_cast<std::size_t>(which)];
  }

  std::size_t interaction;
  Parameters parameters;
  Statements statements;
  std::array<Rows, kStatements> answers;  // of its statements
  std::atomic<std::size_t> left;          // statements without an answer
  std::size_t browser = 0;
  Clock::time_point asked;
};

// Draws all parameters of a query.
[[nodiscard]] Parameters draw_parameters(const Tables& tables, std::uint64_t random);
// Draws an interaction by its share.
[[nodiscard]] std::size_t draw_interaction(std::uint64_t random);

struct Cycle {
  // At most kMostQueries. `answered` is called once for each, by the operator that has its last
  // answer.
  Cycle(std::vector<std::shared_ptr<Query>> queries,
        std::function<void(const std::shared_ptr<Query>&)> answered);

  std::vector<std::shared_ptr<Query>> queries;
  std::array<QuerySet, kStatements> asking;  // by statement
  std::function<void(const std::shared_ptr<Query>&)> answered;

  [[nodiscard]] QuerySet asking_any(const Statements& statements) const;
};

}  // namespace atl::sharedplan
