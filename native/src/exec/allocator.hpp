// The memory allocator of the command: which library to preload, and where the loader has it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace atl::exec {

// The new value of LD_PRELOAD for `--malloc name`, given its present one: the allocator in
// front of what the user has; for `system` what the user has without the allocators known
// here. Searches `library_path` (LD_LIBRARY_PATH), the loader's cache and its default folders.
// Throws Fault: an unknown name; a library that is not installed, with the package to install.
[[nodiscard]] std::string preload_for(std::string_view name, std::string_view preload,
                                      std::string_view library_path);

struct FoundAllocator {
  std::string_view name;  // as --malloc takes it
  std::string path;       // what to preload
};

// Those that `preload_for` would find now, in the order in which --help names them.
[[nodiscard]] std::vector<FoundAllocator> loadable_allocators(std::string_view library_path);

// `preload` without known allocators; entries that stay are joined with ':'. Pure.
[[nodiscard]] std::string without_allocators(std::string_view preload);

// The paths that a loader cache (/etc/ld.so.cache, glibc 2.2 and later) has for a name. Pure;
// a cache that is cut short or of another format has none.
[[nodiscard]] std::vector<std::string> paths_in_cache(std::string_view cache,
                                                      std::string_view name);

}  // namespace atl::exec
