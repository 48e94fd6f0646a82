// Memory for measurements: anonymous, on a chosen node or placed by first touch, on huge pages if
// requested and available, with a record of where its pages really are.
//
// No other data shares its pages. A request for more than the free memory is rejected before the
// memory is touched, because the kernel would kill a process instead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

namespace atl::probe {

inline constexpr std::size_t kLineBytes = 64;
// Intel's adjacent line prefetcher fetches lines in pairs; Arm servers fetch more.
inline constexpr std::size_t kApartBytes = 256;

std::size_t page_bytes();
// Returns 0 if this kernel has no huge pages.
std::size_t huge_page_bytes();

struct PageReport {
  std::map<int, std::size_t> nodes;  // pages per node, in a sample of at most 1,024
  bool huge = false;                 // they back at least nine tenths of the data
};

class Memory {
 public:
  // With a node, all pages exist when this returns; without one, no page is touched yet.
  // Throws Fault (memory) if too little is free or the node is not available.
  Memory(std::size_t bytes, std::optional<int> node, bool huge);
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  Memory(Memory&& other) noexcept;
  Memory& operator=(Memory&&) = delete;
  ~Memory();

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  template <typename T>
  [[nodiscard]] T* as() const {
    return reinterpret_cast<T*>(data_);
  }

  // Writes to every page of a part from the calling thread (first touch).
  void touch(std::size_t offset, std::size_t bytes) const;
  void touch() const { touch(0, bytes_); }

  [[nodiscard]] PageReport report() const;

 private:
  std::byte* mapping_ = nullptr;
  std::size_t mapping_bytes_ = 0;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace atl::probe
