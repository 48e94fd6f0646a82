#include "tables.hpp"

#include <algorithm>
#include <map>
#include <sstream>
#include <stdexcept>

namespace atl::sharedplan {
namespace {

constexpr const char* kSyllables[] = {
    "BA", "BE", "BO", "CA", "CO", "DA", "DE", "DI", "FA", "FO", "GA", "GO", "HA", "HE", "KA", "KO",
    "LA", "LE", "LI", "MA", "MO", "NA", "NE", "PA", "PO", "RA", "RE", "SA", "SO", "TA", "TE", "ZU"};

// Tables and their columns: "key": 1, 2, ...; "owner": of whom five have 1, 2, 3, 4 and 5 rows, in
// order, so 3 on average; "A..B": between; "of T": a key of table T; "word", "title"; "related N":
// of an item, all of which differ.
constexpr const char* kTables = R"(
item: i_id key, i_title title, i_a_id of author, i_pub_date 1..26000, i_subject 1..24, i_cost 100..9999, i_stock 10..30, i_related1 related 1, i_related2 related 2, i_related3 related 3, i_related4 related 4, i_related5 related 5
author: a_id key, a_fname word, a_lname word
customer: c_id key, c_fname word, c_lname word, c_addr_id of address, c_discount 0..50
address: addr_id key, addr_street word, addr_city word, addr_co_id of country
country: co_id key, co_name word
orders: o_id key, o_c_id of customer, o_total 100..99999, o_status 1..4, o_bill_addr_id of address, o_ship_addr_id of address
order_line: ol_o_id owner, ol_i_id of item, ol_qty 1..300
cc_xacts: cx_o_id key, cx_type 1..5, cx_amount 100..99999
cart_line: scl_sc_id owner, scl_i_id of item, scl_qty 1..9
)";

// At scale 1 TPC-W's numbers for 4,000 browsers and 100,000 items. Multiples of 5, for the owners.
std::map<std::string, std::uint32_t> rows_at(double scale) {
  const auto scaled = [&](double number) { return static_cast<std::uint32_t>(number * scale); };
  const std::uint32_t customers = std::max(100U, scaled(2'880.0 * 4'000) / 100 * 100);
  const std::uint32_t items = std::max(1000U, scaled(100'000));
  const std::uint32_t orders = customers / 10 * 9;
  return {{"item", items},
          {"author", items / 4},
          {"customer", customers},
          {"address", 2 * customers},
          {"country", 92},
          {"orders", orders},
          {"order_line", 3 * orders},
          {"cc_xacts", orders},
          {"cart_line", customers / 4 * 3}};
}

// One of a column's values, from its row and a number drawn for it.
using Value = std::function<std::uint32_t(std::uint64_t row, std::uint64_t drawn)>;

Value value_of(const std::string& kind, std::istream& words,
               const std::map<std::string, std::uint32_t>& rows) {
  std::string more;  // after "of" and "related"
  words >> more;
  if (kind == "key") {
    return [](std::uint64_t row, std::uint64_t) { return static_cast<std::uint32_t>(row + 1); };
  }
  if (kind == "owner") {
    return [](std::uint64_t row, std::uint64_t) {
      constexpr std::uint8_t kOwners[] = {0, 1, 1, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 4};
      return static_cast<std::uint32_t>(row / 15 * 5 + kOwners[row % 15] + 1);
    };
  }
  if (kind == "related") {
    return
        [first = 7 * std::stoul(more), items = rows.at("item")](std::uint64_t row, std::uint64_t) {
          return static_cast<std::uint32_t>(1 + (mixed(kWords, row) + first) % items);
        };
  }
  std::uint64_t least = 0, most = kWords - 1;  // a word
  if (kind == "title") {
    most = std::uint64_t{kWords} * kWords * kWords - 1;
  } else if (kind == "of") {
    least = 1;
    most = rows.at(more);
  } else if (kind != "word") {
    least = std::stoul(kind);
    most = std::stoul(kind.substr(kind.find("..") + 2));
  }
  return [=](std::uint64_t, std::uint64_t drawn) {
    return static_cast<std::uint32_t>(least + drawn % (most - least + 1));
  };
}

template <class List>
auto& named(List& list, std::string_view name) {
  for (auto& each : list) {
    if (each.name == name) return each;
  }
  throw std::logic_error("there is no " + std::string(name));
}

}  // namespace

std::uint64_t mixed(std::uint64_t seed, std::uint64_t number) {
  std::uint64_t bits = seed * 0x9e3779b97f4a7c15U + number + 0x632be59bd9b4e019U;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9U;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebU;
  return bits ^ (bits >> 31);
}

std::string text_of(Type type, std::uint32_t value) {
  const auto word = [](std::uint32_t code) {
    return std::string(kSyllables[code / 32 % 32]) + kSyllables[code % 32];
  };
  switch (type) {
    case Type::kWord: return word(value);
    case Type::kTitle: return word(value >> 20) + ' ' + word(value >> 10) + ' ' + word(value);
    case Type::kNumber: break;
  }
  return std::to_string(value);
}

const Column& Table::column(std::string_view wanted) const { return named(columns, wanted); }
const Table& Tables::operator[](std::string_view name) const { return named(tables_, name); }

Tables::Tables(double scale, std::uint64_t seed, const Memory& memory) {
  const auto rows = rows_at(scale);
  std::istringstream text(kTables);
  std::uint64_t number = 0;
  for (std::string name; std::getline(text >> std::ws, name, ':');) {
    Table& table = tables_.emplace_back(Table{name, rows.at(name), {}});
    std::string line;
    std::getline(text, line);
    std::istringstream columns(line);
    for (std::string each; std::getline(columns, each, ',');) {
      std::istringstream words(each);
      std::string column, kind;
      words >> column >> kind;
      const Value value = value_of(kind, words, rows);
      Array<std::uint32_t> values = memory(name, table.rows);
      const std::uint64_t own = mixed(seed, ++number);
      for (std::uint64_t row = 0; row < table.rows; ++row)
        values[row] = value(row, mixed(own, row));
      const Type type = kind == "word"    ? Type::kWord
                        : kind == "title" ? Type::kTitle
                                          : Type::kNumber;
      table.columns.push_back({column, type, std::move(values)});
    }
  }
}

std::uint64_t Tables::bytes(double scale) {
  const auto rows = rows_at(scale);
  std::istringstream text(kTables);
  std::uint64_t values = 0;
  for (std::string name, line;
       std::getline(text >> std::ws, name, ':') && std::getline(text, line);) {
    values += std::uint64_t{rows.at(name)} *
              static_cast<std::uint64_t>(1 + std::count(line.begin(), line.end(), ','));
  }
  return values * sizeof(std::uint32_t);
}

}  // namespace atl::sharedplan
