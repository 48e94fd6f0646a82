// Memory for measuring: anonymous, on a chosen node or where it is first touched, on huge pages
// where they are wanted and had, and the record of where its pages really lie.
//
// Nothing smaller than a page is shared with anybody. A request for more than what is free is
// refused before it is touched, for the kernel would kill somebody instead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

namespace atl::probe {

inline constexpr std::size_t kLineBytes = 64;
// Neighbours are fetched in pairs (Intel's adjacent line prefetcher), Arm servers fetch more.
inline constexpr std::size_t kApartBytes = 256;

std::size_t page_bytes();
// 0: this kernel has none.
std::size_t huge_page_bytes();

struct PageReport {
  std::map<int, std::size_t> nodes;  // node to pages, of a sample of at most 1,024
  bool huge = false;                 // under nine tenths of the data at least
};

class Memory {
 public:
  // With a node, all pages are there when this returns; without, none is touched yet.
  // Fault (memory): too little is free, or the node cannot be had.
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

  // Writes to every page of a part, from the calling thread: first touch.
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
