#include "kernels.hpp"

#include <map>

#include "chase.hpp"
#include "hello.hpp"
#include "load.hpp"
#include "move.hpp"

namespace atl::probe {

Kernel find_kernel(const std::string& name) {
  static const std::map<std::string, Kernel> kernels{
      {"chase", chase},
      {"hello", hello},
      {"load", load},
      {"move", move},
  };
  const auto found = kernels.find(name);
  return found == kernels.end() ? nullptr : found->second;
}

}  // namespace atl::probe
