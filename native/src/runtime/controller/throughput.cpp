#include "throughput.hpp"

#include <cmath>

namespace atl::runtime {

void Ledger::add(const std::vector<TypeWork>& work) {
  for (const TypeWork& entry : work) {
    if (!(entry.units >= 0 && std::isfinite(entry.units))) continue;
    if (!(entry.busy_s > 0 && std::isfinite(entry.busy_s))) continue;
    Totals& totals = types_[entry.type];
    totals.units += entry.units;
    totals.busy_s += entry.busy_s;
  }
}

double Ledger::busy_s() const {
  double sum = 0;
  for (const auto& [type, totals] : types_) sum += totals.busy_s;
  return sum;
}

std::optional<double> log_speedup(const Ledger& from, const Ledger& to) {
  // A type with time and no unit in one of them, a task that had not ended, cannot be compared.
  const auto match = [&](std::uintptr_t type, const Ledger::Totals& before) {
    const auto after = to.types_.find(type);
    return before.units > 0 && after != to.types_.end() && after->second.units > 0
               ? after
               : to.types_.end();
  };
  double busy_from = 0;  // of the types in both
  double busy_to = 0;
  for (const auto& [type, before] : from.types_) {
    const auto after = match(type, before);
    if (after == to.types_.end()) continue;
    busy_from += before.busy_s;
    busy_to += after->second.busy_s;
  }
  constexpr double kLeastMatched = 0.5;
  // Written so that two empty ledgers, and sums that overflowed, give no answer.
  if (!(busy_from > 0 && busy_from >= kLeastMatched * from.busy_s())) return std::nullopt;
  if (!(busy_to > 0 && busy_to >= kLeastMatched * to.busy_s())) return std::nullopt;
  double sum = 0;
  for (const auto& [type, before] : from.types_) {
    const auto after = match(type, before);
    if (after == to.types_.end()) continue;
    const double weight = (before.busy_s / busy_from + after->second.busy_s / busy_to) / 2;
    sum += weight * (std::log(after->second.units / after->second.busy_s) -
                     std::log(before.units / before.busy_s));
  }
  if (!std::isfinite(sum)) return std::nullopt;
  return sum;
}

}  // namespace atl::runtime
