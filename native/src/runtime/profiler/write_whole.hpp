// A file that appears whole or not at all, in the runtime's words.
#pragma once

#include <string>
#include <utility>

#include "atoll/runtime/places.hpp"
#include "base/whole_file.hpp"

namespace atl::runtime {

// `fill(base::WholeFile&)` writes it. Throws RuntimeFault if that cannot be.
template <class Fill>
void write_whole(const std::string& path, Fill&& fill) {
  try {
    base::WholeFile file(path);
    std::forward<Fill>(fill)(file);
    file.commit();
  } catch (const base::FileFault& fault) {
    throw RuntimeFault(fault.what());
  }
}

}  // namespace atl::runtime
