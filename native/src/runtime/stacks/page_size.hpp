// The page size of this system, in bytes.
#pragma once

#include <cstddef>

namespace atl::runtime {

std::size_t page_bytes() noexcept;

}  // namespace atl::runtime
