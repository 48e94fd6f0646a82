// What the operators of the plan do with a cycle's rows.
#pragma once

#include <memory>
#include <memory_resource>
#include <span>

#include "batch.hpp"
#include "plan.hpp"

namespace atl::sharedplan {

class Operator {
 public:
  virtual ~Operator() = default;
  // Reads the inputs (a scan's only the cycle), and appends to `out`, whose cycle is set. `mine`:
  // the queries for which it works.
  virtual void work(std::span<const BatchPointer> inputs, const QuerySet& mine, Batch& out) = 0;
  // Of tables, read in the last call.
  [[nodiscard]] std::uint64_t table_bytes() const { return table_bytes_; }
  // Of its own structures, which it uses again in each cycle.
  [[nodiscard]] virtual std::uint64_t own_bytes() const { return 0; }

 protected:
  std::uint64_t table_bytes_ = 0;
};

struct Output {
  std::string name;
  Type type;
};
using Outputs = std::vector<Output>;

struct Made {
  std::unique_ptr<Operator> work;
  Outputs outputs;
};

// `inputs`: the columns of each. Its structures are in `memory`. Throws std::logic_error if a name
// is not known.
[[nodiscard]] Made make_operator(const Spec& spec, const Tables& tables,
                                 std::span<const Outputs> inputs,
                                 std::pmr::memory_resource* memory);

}  // namespace atl::sharedplan
