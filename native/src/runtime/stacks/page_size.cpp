#include "page_size.hpp"

#include <unistd.h>

namespace atl::runtime {

std::size_t page_bytes() noexcept {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

}  // namespace atl::runtime
