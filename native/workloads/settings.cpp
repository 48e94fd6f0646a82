#include <algorithm>
#include <charconv>

#include "workload.hpp"

namespace atl::kernels {

std::uint64_t Settings::number(const std::string& name) const {
  const std::string& text = values_.at(name);
  std::uint64_t found = 0;
  std::from_chars(text.data(), text.data() + text.size(), found);
  return found;
}

}  // namespace atl::kernels
