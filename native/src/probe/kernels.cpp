#include "kernels.hpp"

#include <map>

#include "hello.hpp"
#include "move.hpp"

namespace atl::probe {

Kernel find_kernel(const std::string& name) {
  static const std::map<std::string, Kernel> kernels{
      {"hello", hello},
      {"move", move},
  };
  const auto found = kernels.find(name);
  return found == kernels.end() ? nullptr : found->second;
}

}  // namespace atl::probe
