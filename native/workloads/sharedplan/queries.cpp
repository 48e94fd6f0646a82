#include "queries.hpp"

namespace atl::sharedplan {

using enum Statement;

std::span<const Interaction> interactions() {
  static const std::vector<Interaction> all = {
      {"home", 29, {kName, kRelated}},
      {"new products", 11, {kNew}},
      {"best sellers", 11, {kBest}},
      {"product detail", 21, {kDetail}},
      {"search request", 12, {kRelated}},
      {"search results", 11, {kByTitle}},
      {"shopping cart", 2, {kCart}},             // without its update
      {"customer registration", 0.82, {kName}},  // a form: the name of who is known
      {"buy request", 0.75, {kBuyer, kCart}},    // without its updates
      {"buy confirm", 0.69, {kBuyer, kCart}},    // without the order that it writes
      {"order inquiry", 0.3, {kName}},           // a form
      {"order display", 0.25, {kOrder, kOrderLines}},
      {"admin request", 0.1, {kDetail}},
      {"admin confirm", 0.09, {kDetail, kAlso}},  // without its update
  };
  return all;
}

Query::Query(std::size_t interaction, const Parameters& parameters)
    : interaction(interaction),
      parameters(parameters),
      statements(interactions()[interaction].statements),
      left(statements.size()) {
  for (Statement& statement : statements) {
    if (statement != kByTitle) continue;
    statement = static_cast<Statement>(static_cast<std::uint32_t>(kByTitle) +
                                       parameter(Parameter::kSearch));
  }
}

Parameters draw_parameters(const Tables& tables, std::uint64_t random) {
  auto below = [random, number = std::uint64_t{0}](std::uint64_t most) mutable {
    return static_cast<std::uint32_t>(mixed(random, ++number) % most);
  };
  const Array<std::uint32_t>& names = tables["author"].column("a_lname").values;
  return {below(tables["customer"].rows) + 1,
          below(tables["item"].rows) + 1,
          below(kSubjects) + 1,
          names[below(names.size())],
          below(tables["cart_line"].rows / 3) + 1,
          below(3)};
}

std::size_t draw_interaction(std::uint64_t random) {
  double left = static_cast<double>(random >> 11) * 0x1p-53 * 100;
  const std::span<const Interaction> all = interactions();
  for (std::size_t at = 0; at + 1 < all.size(); ++at) {
    left -= all[at].percent;
    if (left < 0) return at;
  }
  return all.size() - 1;
}

Cycle::Cycle(std::vector<std::shared_ptr<Query>> given,
             std::function<void(const std::shared_ptr<Query>&)> called)
    : queries(std::move(given)), answered(std::move(called)) {
  for (std::size_t query = 0; query < queries.size(); ++query) {
    for (const Statement each : queries[query]->statements) {
      asking[static_cast<std::size_t>(each)].add(query);
    }
  }
}

QuerySet Cycle::asking_any(const Statements& statements) const {
  QuerySet all;
  for (const Statement each : statements) all |= asking[static_cast<std::size_t>(each)];
  return all;
}

}  // namespace atl::sharedplan
