#include <algorithm>
#include <charconv>
#include <cstdio>

#include "workload.hpp"

namespace atl::kernels {

std::uint64_t Settings::number(const std::string& name) const {
  const std::string& text = values_.at(name);
  std::uint64_t found = 0;
  std::from_chars(text.data(), text.data() + text.size(), found);
  return found;
}

Lines since(const Lines& before, const Lines& after) {
  Lines grown = after;
  for (std::size_t source = 0; source < kFillSources; ++source) {
    if (grown.from[source]) *grown.from[source] -= before.from[source].value_or(0);
  }
  return grown;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

std::string gibibytes(std::uint64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f GiB", static_cast<double>(bytes) / 0x1p30);
  return text;
}

}  // namespace atl::kernels
