#pragma once
#include <stdexcept>
#include <string>

#define ATOLL_EXPORT __attribute__((visibility("default")))

namespace atl::topology {

class ATOLL_EXPORT Fault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

ATOLL_EXPORT std::string discover(const std::string& kind, const std::string& where);

}  // namespace atl::topology
