#include "kernels.hpp"

#include <map>

#include "chase.hpp"
#include "churn.hpp"
#include "hello.hpp"
#include "load.hpp"
#include "move.hpp"
#include "ping.hpp"
#include "pipe.hpp"
#include "spin.hpp"
#include "vector.hpp"

namespace atl::probe {

Kernel find_kernel(const std::string& name) {
  static const std::map<std::string, Kernel> kernels{
      {"chase", chase}, {"churn", churn}, {"hello", hello}, {"load", load},     {"move", move},
      {"ping", ping},   {"pipe", pipe},   {"spin", spin},   {"vector", vector},
  };
  const auto found = kernels.find(name);
  return found == kernels.end() ? nullptr : found->second;
}

}  // namespace atl::probe
