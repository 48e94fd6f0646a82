#include "allocator.hpp"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "fault.hpp"

namespace atl::exec {
namespace {

struct Allocator {
  std::string_view name;
  std::array<std::string_view, 2> libraries;  // in order of preference
  std::string_view package;                   // in Debian 12
};
// Prefers tcmalloc without its profilers. In oneTBB the proxy library replaces malloc.
constexpr Allocator kAllocators[] = {
    {"jemalloc", {"libjemalloc.so.2", ""}, "libjemalloc2"},
    {"tcmalloc", {"libtcmalloc_minimal.so.4", "libtcmalloc.so.4"}, "libtcmalloc-minimal4"},
    {"mimalloc", {"libmimalloc.so.2", "libmimalloc.so.2.0"}, "libmimalloc2.0"},
    {"tbbmalloc", {"libtbbmalloc_proxy.so.2", ""}, "libtbbmalloc2"},
};
constexpr std::string_view kKnownPrefixes[] = {"libjemalloc.so", "libtcmalloc", "libmimalloc",
                                               "libtbbmalloc"};
constexpr std::string_view kNames = "jemalloc, tcmalloc, mimalloc, tbbmalloc, system";

constexpr std::string_view kLoaderCache = "/etc/ld.so.cache";
constexpr std::string_view kDefaultFolders[] = {"/lib64", "/usr/lib64", "/lib", "/usr/lib"};

// The format of glibc's dl-cache.h since 2.2. Before glibc 2.32 it may follow the old format in
// the same file, so it is located by its magic.
constexpr std::string_view kCacheMagic = "glibc-ld.so.cache1.1";
constexpr std::size_t kCacheHeaderBytes = 48;
constexpr std::size_t kCacheEntryBytes = 24;

std::uint32_t word_at(std::string_view bytes, std::size_t offset) {
  std::uint32_t value = 0;
  if (offset + sizeof value <= bytes.size()) {
    std::memcpy(&value, bytes.data() + offset, sizeof value);
  }
  return value;
}

std::string_view text_at(std::string_view bytes, std::size_t offset) {
  if (offset >= bytes.size()) {
    return {};
  }
  const std::string_view rest = bytes.substr(offset);
  return rest.substr(0, rest.find('\0'));
}

std::string read_file(const std::string& path, std::size_t limit) {
  std::string text;
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  std::array<char, 16384> buffer;
  ssize_t count = 0;
  while (file >= 0 && text.size() < limit &&
         (count = read(file, buffer.data(), std::min(buffer.size(), limit - text.size()))) > 0) {
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  if (file >= 0) {
    close(file);
  }
  return text;
}

// Word size and machine of an ELF file; empty for any other file.
std::string elf_kind(const std::string& path) {
  const std::string head = read_file(path, sizeof(Elf64_Ehdr));
  if (head.size() < sizeof(Elf32_Ehdr) || !head.starts_with(ELFMAG)) {
    return {};
  }
  return head.substr(EI_CLASS, 2) + head.substr(offsetof(Elf64_Ehdr, e_machine), 2);
}

// Mimics the loader: it skips a library of another architecture, and it would split a path in
// LD_PRELOAD at blanks and colons and start without the library.
bool is_loadable(const std::string& path) {
  if (path.find_first_of(": ") != std::string::npos) {
    return false;
  }
  static const std::string ours = elf_kind("/proc/self/exe");
  const std::string kind = elf_kind(path);
  return !kind.empty() && kind == ours;
}

std::vector<std::string_view> split(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(separators), text.size());
    if (end > 0) {
      parts.push_back(text.substr(0, end));
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

std::optional<std::string> find_library(std::string_view name, std::string_view library_path) {
  std::vector<std::string> candidates;
  const auto add_folder = [&](std::string_view folder) {
    candidates.push_back(std::string(folder) + "/" + std::string(name));
  };
  for (const std::string_view folder : split(library_path, ":;")) {
    add_folder(folder);
  }
  constexpr std::size_t kCacheLimit = 64U << 20;
  const std::string cache = read_file(std::string(kLoaderCache), kCacheLimit);
  for (std::string& path : paths_in_cache(cache, name)) {
    candidates.push_back(std::move(path));
  }
  for (const std::string_view folder : kDefaultFolders) {
    add_folder(folder);
  }
  const auto found = std::find_if(candidates.begin(), candidates.end(), is_loadable);
  return found == candidates.end() ? std::nullopt : std::optional(*found);
}

std::optional<std::string> find_allocator(const Allocator& allocator,
                                          std::string_view library_path) {
  for (const std::string_view library : allocator.libraries) {
    if (library.empty()) {
      continue;
    }
    if (auto path = find_library(library, library_path)) {
      return path;
    }
  }
  return std::nullopt;
}

bool is_known_allocator(std::string_view path) {
  const std::string_view file = path.substr(path.rfind('/') + 1);  // npos + 1 == 0
  return std::any_of(std::begin(kKnownPrefixes), std::end(kKnownPrefixes),
                     [&](std::string_view prefix) { return file.starts_with(prefix); });
}

}  // namespace

std::vector<std::string> paths_in_cache(std::string_view cache, std::string_view name) {
  const std::size_t start = cache.find(kCacheMagic);
  if (start == std::string_view::npos) {
    return {};
  }
  cache.remove_prefix(start);  // string offsets start at the magic
  const std::size_t room = cache.size() < kCacheHeaderBytes ? 0 : cache.size() - kCacheHeaderBytes;
  const std::size_t entries =
      std::min<std::size_t>(word_at(cache, kCacheMagic.size()), room / kCacheEntryBytes);
  std::vector<std::string> paths;
  for (std::size_t entry = 0; entry < entries; ++entry) {
    const std::size_t offset = kCacheHeaderBytes + entry * kCacheEntryBytes;
    if (text_at(cache, word_at(cache, offset + 4)) == name) {
      paths.emplace_back(text_at(cache, word_at(cache, offset + 8)));
    }
  }
  return paths;
}

std::string without_allocators(std::string_view preload) {
  std::string kept;
  for (const std::string_view entry : split(preload, ": ")) {  // ld.so(8): both are separators
    if (!is_known_allocator(entry)) {
      kept.append(kept.empty() ? "" : ":").append(entry);
    }
  }
  return kept;
}

std::vector<FoundAllocator> loadable_allocators(std::string_view library_path) {
  std::vector<FoundAllocator> found;
  for (const Allocator& known : kAllocators) {
    if (auto path = find_allocator(known, library_path)) {
      found.push_back({known.name, std::move(*path)});
    }
  }
  return found;
}

std::string preload_for(std::string_view name, std::string_view preload,
                        std::string_view library_path) {
  if (name == "system") {
    return without_allocators(preload);
  }
  for (const Allocator& known : kAllocators) {
    if (known.name != name) {
      continue;
    }
    if (const auto path = find_allocator(known, library_path)) {
      return preload.empty() ? *path : *path + ":" + std::string(preload);
    }
    throw Fault("--malloc " + std::string(name) + ": " + std::string(known.libraries[0]) +
                " was not found by the loader; install the package " + std::string(known.package));
  }
  throw Fault("--malloc " + std::string(name) + ": no such allocator; choose from " +
              std::string(kNames));
}

}  // namespace atl::exec
