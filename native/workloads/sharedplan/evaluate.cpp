#include "evaluate.hpp"

#include <algorithm>
#include <map>

#include "flags.hpp"
#include "plan.hpp"

namespace atl::sharedplan {
namespace {

using Row = std::vector<std::uint32_t>;

// Sorted by the first `keys` values, which are then left out; the first `most` rows.
Rows sorted(std::vector<Row> rows, std::size_t keys, std::size_t most) {
  std::sort(rows.begin(), rows.end());
  Rows flat;
  for (std::size_t at = 0; at < std::min(most, rows.size()); ++at) {
    flat.insert(flat.end(), rows[at].begin() + static_cast<std::ptrdiff_t>(keys), rows[at].end());
  }
  return flat;
}

}  // namespace

Rows evaluate(const Tables& tables, const Query& query, Statement statement) {
  const auto of = [&](const char* table, const char* column, std::uint32_t key) {
    return tables[table].column(column).values[key - 1];
  };
  const auto item = [&](const char* column, std::uint32_t key) { return of("item", column, key); };
  const auto keys_where = [&](const char* table, const char* column, std::uint32_t value) {
    std::vector<std::uint32_t> keys;
    const Array<std::uint32_t>& values = tables[table].column(column).values;
    for (std::uint32_t row = 0; row < values.size(); ++row) {
      if (values[row] == value) keys.push_back(row + 1);
    }
    return keys;
  };
  const auto author = [&](const char* column, std::uint32_t key) {
    return of("author", column, item("i_a_id", key));
  };

  const std::uint32_t customer = query.parameter(Parameter::kCustomer);
  const std::uint32_t wanted = query.parameter(Parameter::kItem);
  const std::uint32_t subject = query.parameter(Parameter::kSubject);
  const std::uint32_t word = query.parameter(Parameter::kWord);
  const auto last_order = [&]() -> std::uint32_t {
    const auto orders = keys_where("orders", "o_c_id", customer);
    return orders.empty() ? 0 : orders.back();
  };
  std::vector<Row> rows;
  // The lines in a cart or an order. `columns`: its key, the item's, and the quantity.
  const auto lines_of = [&](const char* table, std::array<const char*, 3> columns,
                            std::uint32_t owner) {
    for (const std::uint32_t line : keys_where(table, columns[0], owner)) {
      const std::uint32_t key = of(table, columns[1], line);
      const std::uint32_t quantity = of(table, columns[2], line);
      rows.push_back({key, quantity, key, item("i_title", key), item("i_cost", key), quantity});
    }
    return sorted(rows, 2, rows.size());
  };
  switch (statement) {
    case Statement::kName:
      return {of("customer", "c_fname", customer), of("customer", "c_lname", customer)};
    case Statement::kRelated:
      for (const char* column :
           {"i_related1", "i_related2", "i_related3", "i_related4", "i_related5"}) {
        const std::uint32_t key = item(column, wanted);
        rows.push_back({key, item("i_title", key), item("i_cost", key)});
      }
      return sorted(rows, 0, 5);
    case Statement::kNew:
      for (const std::uint32_t key : keys_where("item", "i_subject", subject)) {
        const std::uint32_t title = item("i_title", key);
        const std::uint32_t date = item("i_pub_date", key);
        rows.push_back(
            {~date, title, key, key, title, date, author("a_fname", key), author("a_lname", key)});
      }
      return sorted(rows, 3, 50);
    case Statement::kBest: {
      std::map<std::uint32_t, std::uint32_t> sold;
      const Table& lines = tables["order_line"];
      for (std::uint32_t key = lines.rows; key > 0; --key) {
        if (of("order_line", "ol_o_id", key) + kRecentOrders <= tables["orders"].rows) break;
        const std::uint32_t bought = of("order_line", "ol_i_id", key);
        if (item("i_subject", bought) == subject) sold[bought] += of("order_line", "ol_qty", key);
      }
      for (const auto& [key, sum] : sold) {
        rows.push_back({~sum, key, key, item("i_title", key), sum, author("a_fname", key),
                        author("a_lname", key)});
      }
      return sorted(rows, 2, 50);
    }
    case Statement::kDetail:
      return {wanted,
              item("i_title", wanted),
              item("i_cost", wanted),
              item("i_stock", wanted),
              author("a_fname", wanted),
              author("a_lname", wanted)};
    case Statement::kByTitle:
    case Statement::kBySubject:
    case Statement::kByAuthor:
      for (std::uint32_t key = 1; key <= tables["item"].rows; ++key) {
        const std::uint32_t title = item("i_title", key);
        const bool found =
            statement == Statement::kBySubject ? item("i_subject", key) == subject
            : statement == Statement::kByAuthor
                ? author("a_lname", key) == word
                : title >> 20 == word || (title >> 10 & 1023) == word || (title & 1023) == word;
        if (!found) continue;
        rows.push_back({title, key, key, title, author("a_fname", key), author("a_lname", key)});
      }
      return sorted(rows, 2, 50);
    case Statement::kCart:
      return lines_of("cart_line", {"scl_sc_id", "scl_i_id", "scl_qty"},
                      query.parameter(Parameter::kCart));
    case Statement::kBuyer: {
      const std::uint32_t address = of("customer", "c_addr_id", customer);
      return {customer,
              of("customer", "c_fname", customer),
              of("customer", "c_lname", customer),
              of("customer", "c_discount", customer),
              of("address", "addr_city", address),
              of("country", "co_name", of("address", "addr_co_id", address))};
    }
    case Statement::kOrder: {
      const std::uint32_t order = last_order();
      if (order == 0) return {};
      return {order,
              of("orders", "o_total", order),
              of("orders", "o_status", order),
              of("address", "addr_city", of("orders", "o_bill_addr_id", order)),
              of("address", "addr_city", of("orders", "o_ship_addr_id", order)),
              of("cc_xacts", "cx_type", order),
              of("cc_xacts", "cx_amount", order)};
    }
    case Statement::kOrderLines:
      return lines_of("order_line", {"ol_o_id", "ol_i_id", "ol_qty"}, last_order());
    case Statement::kAlso: {
      std::map<std::uint32_t, std::uint32_t> bought;  // by item
      // Lines are in the order of their orders.
      const Array<std::uint32_t>& orders = tables["order_line"].column("ol_o_id").values;
      for (const std::uint32_t own : keys_where("order_line", "ol_i_id", wanted)) {
        const auto [from, to] =
            std::equal_range(orders.begin(), orders.end(), of("order_line", "ol_o_id", own));
        for (const std::uint32_t* at = from; at != to; ++at) {
          const auto line = static_cast<std::uint32_t>(at - orders.begin() + 1);
          const std::uint32_t key = of("order_line", "ol_i_id", line);
          if (key != wanted) bought[key] += of("order_line", "ol_qty", line);
        }
      }
      for (const auto& [key, sum] : bought) {
        rows.push_back({~sum, key, key, item("i_title", key), sum});
      }
      return sorted(rows, 2, 5);
    }
  }
  return {};
}

void verify(const Tables& tables, const Query& query) {
  for (const Statement statement : query.statements) {
    if (query.answers[static_cast<std::size_t>(statement)] == evaluate(tables, query, statement)) {
      continue;
    }
    throw kernels::WrongAnswer(std::string("the answer to '") + name_of(statement) + "' of '" +
                               interactions()[query.interaction].name + "' is wrong");
  }
}

}  // namespace atl::sharedplan
