// Selects the command's memory allocator: which library to preload, and where to find it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace atl::exec {

// Returns the new value of LD_PRELOAD for `--malloc name`, given the present value. The allocator
// goes in front of the user's entries; `system` removes the allocators known here and keeps the
// rest. Searches `library_path` (LD_LIBRARY_PATH), the loader's cache and its default folders.
// Throws Fault for an unknown name, or a library that is not installed (names its package).
[[nodiscard]] std::string preload_for(std::string_view name, std::string_view preload,
                                      std::string_view library_path);

struct FoundAllocator {
  std::string_view name;  // the argument of --malloc
  std::string path;       // the library to preload
};

// Returns the allocators that `preload_for` would find now, in the order of --help.
[[nodiscard]] std::vector<FoundAllocator> loadable_allocators(std::string_view library_path);

// Returns `preload` without known allocators. The remaining entries are joined with ':'. Pure.
[[nodiscard]] std::string without_allocators(std::string_view preload);

// Returns the paths that a loader cache (/etc/ld.so.cache, glibc 2.2 and later) lists for a name:
// none if the cache is truncated or has another format. Pure.
[[nodiscard]] std::vector<std::string> paths_in_cache(std::string_view cache,
                                                      std::string_view name);

}  // namespace atl::exec
