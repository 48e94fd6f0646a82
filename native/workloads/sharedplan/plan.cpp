#include "plan.hpp"

#include <algorithm>
#include <sstream>
#include <stdexcept>

namespace atl::sharedplan {
namespace {

// id | kind | statements | inputs | arguments (Spec::arguments) | columns
constexpr const char* kPlan = R"(
scan_item | scan | related new best detail title subject author | | item | i_id i_title i_a_id i_pub_date i_cost i_stock i_related1 i_related2 i_related3 i_related4 i_related5
scan_author | scan | author | | author | a_id
scan_customer | scan | name buyer | | customer | c_id c_fname c_lname c_addr_id c_discount
scan_orders | scan | best order lines | | orders | o_id o_total o_status o_bill_addr_id o_ship_addr_id
scan_order_line | scan | best also | | order_line | ol_o_id ol_i_id ol_qty
scan_cart_line | scan | cart | | cart_line | scl_i_id scl_qty
scan_country | scan | buyer | | country | co_id co_name

filter_names | filter | name | scan_customer | | c_fname c_lname

unnest_related | unnest | related | scan_item | i_related1 i_related2 i_related3 i_related4 i_related5 | related
lookup_related | lookup | related | unnest_related | item related | i_id i_title i_cost
sort_related | top | related | lookup_related | all i_id | i_id i_title i_cost

filter_new | filter | new | scan_item | | i_id i_title i_a_id i_pub_date
top_new | top | new | filter_new | 50 -i_pub_date i_title i_id | i_id i_title i_a_id i_pub_date
lookup_new_authors | lookup | new | top_new | author i_a_id | i_id i_title i_pub_date a_fname a_lname

join_recent_lines | join | best | scan_orders scan_order_line | o_id ol_o_id | ol_i_id ol_qty
join_best_items | join | best | scan_item join_recent_lines | i_id ol_i_id | i_id i_title i_a_id ol_qty
group_best | group | best | join_best_items | i_id ol_qty | i_id i_title i_a_id sold
top_best | top | best | group_best | 50 -sold i_id | i_id i_title i_a_id sold
lookup_best_authors | lookup | best | top_best | author i_a_id | i_id i_title sold a_fname a_lname

filter_detail | filter | detail | scan_item | | i_id i_title i_a_id i_cost i_stock
lookup_detail_authors | lookup | detail | filter_detail | author i_a_id | i_id i_title i_cost i_stock a_fname a_lname

filter_found | filter | title subject | scan_item | | i_id i_title i_a_id
filter_written | filter | author | scan_item | | i_id i_title i_a_id
join_written | join | author | scan_author filter_written | a_id i_a_id | i_id i_title i_a_id
union_search | union | title subject author | filter_found join_written | | i_id i_title i_a_id
top_search | top | title subject author | union_search | 50 i_title i_id | i_id i_title i_a_id
lookup_search_authors | lookup | title subject author | top_search | author i_a_id | i_id i_title a_fname a_lname

lookup_cart_items | lookup | cart | scan_cart_line | item scl_i_id | i_id i_title i_cost scl_qty
sort_cart | top | cart | lookup_cart_items | all i_id scl_qty | i_id i_title i_cost scl_qty

filter_buyers | filter | buyer | scan_customer | | c_id c_fname c_lname c_addr_id c_discount
lookup_buyer_address | lookup | buyer | filter_buyers | address c_addr_id | c_id c_fname c_lname c_discount addr_city addr_co_id
join_buyer_country | join | buyer | scan_country lookup_buyer_address | co_id addr_co_id | c_id c_fname c_lname c_discount addr_city co_name

top_last_order | top | order lines | scan_orders | 1 -o_id | o_id o_total o_status o_bill_addr_id o_ship_addr_id
lookup_bill_address | lookup | order | top_last_order | address o_bill_addr_id | o_id o_total o_status o_ship_addr_id bill_city=addr_city
lookup_ship_address | lookup | order | lookup_bill_address | address o_ship_addr_id | o_id o_total o_status bill_city ship_city=addr_city
join_payment | join | order | lookup_ship_address | o_id cx_o_id cc_xacts | o_id o_total o_status bill_city ship_city cx_type cx_amount
join_order_lines | join | lines | top_last_order | o_id ol_o_id order_line | ol_i_id ol_qty
lookup_line_items | lookup | lines | join_order_lines | item ol_i_id | i_id i_title i_cost ol_qty
sort_order_lines | top | lines | lookup_line_items | all i_id ol_qty | i_id i_title i_cost ol_qty

join_also_bought | join | also | scan_order_line | ol_o_id ol_o_id order_line | item=ol_i_id also=other.ol_i_id qty=other.ol_qty
filter_others | filter | also | join_also_bought | item also | also qty
group_also | group | also | filter_others | also qty | also bought
top_also | top | also | group_also | 5 -bought also | also bought
lookup_also_items | lookup | also | top_also | item also | also i_title bought
)";

constexpr const char* kStatementNames[] = {"name",  "related", "new",    "best", "detail",
                                           "title", "subject", "author", "cart", "buyer",
                                           "order", "lines",   "also"};
constexpr const char* kKindNames[] = {"scan",   "filter", "unnest", "union",
                                      "lookup", "join",   "group",  "top"};

template <class Enum, std::size_t kSize>
Enum number_of(const std::string& word, const char* const (&names)[kSize]) {
  const auto found = std::find(std::begin(names), std::end(names), word);
  if (found == std::end(names)) throw std::logic_error("the plan has an unknown word: " + word);
  return static_cast<Enum>(found - std::begin(names));
}

Words words_of(std::istream& line) {
  std::string field;
  std::getline(line, field, '|');
  std::istringstream words(field);
  return {std::istream_iterator<std::string>(words), {}};
}

}  // namespace

std::span<const Spec> plan() {
  static const std::vector<Spec> all = [] {
    std::vector<Spec> made;
    std::istringstream text(kPlan);
    for (std::string each; std::getline(text, each);) {
      if (each.empty()) continue;
      std::istringstream line(each);
      Spec& spec = made.emplace_back();
      spec.id = words_of(line).at(0);
      spec.kind = number_of<Kind>(words_of(line).at(0), kKindNames);
      for (const std::string& word : words_of(line)) {
        spec.statements.push_back(number_of<Statement>(word, kStatementNames));
      }
      spec.inputs = words_of(line);
      spec.arguments = words_of(line);
      spec.columns = words_of(line);
    }
    return made;
  }();
  return all;
}

std::span<const Predicate> predicates() {
  using enum Predicate::Match;
  using enum Statement;
  static const std::vector<Predicate> all = {
      {kName, "scan_customer", kEqual, "c_id", Parameter::kCustomer},
      {kRelated, "scan_item", kEqual, "i_id", Parameter::kItem},
      {kNew, "scan_item", kEqual, "i_subject", Parameter::kSubject},
      {kBest, "scan_item", kEqual, "i_subject", Parameter::kSubject},
      {kBest, "scan_orders", kRecent, "o_id"},
      {kBest, "scan_order_line", kRecent, "ol_o_id"},
      {kDetail, "scan_item", kEqual, "i_id", Parameter::kItem},
      {kByTitle, "scan_item", kTitleWord, "i_title", Parameter::kWord},
      {kBySubject, "scan_item", kEqual, "i_subject", Parameter::kSubject},
      {kByAuthor, "scan_author", kEqual, "a_lname", Parameter::kWord},
      {kByAuthor, "scan_item", kAll},
      {kCart, "scan_cart_line", kEqual, "scl_sc_id", Parameter::kCart},
      {kBuyer, "scan_customer", kEqual, "c_id", Parameter::kCustomer},
      {kBuyer, "scan_country", kAll},
      {kOrder, "scan_orders", kEqual, "o_c_id", Parameter::kCustomer},
      {kOrderLines, "scan_orders", kEqual, "o_c_id", Parameter::kCustomer},
      {kAlso, "scan_order_line", kEqual, "ol_i_id", Parameter::kItem},
  };
  return all;
}

const char* name_of(Statement statement) { return kStatementNames[static_cast<int>(statement)]; }

}  // namespace atl::sharedplan
