// Rows of input and tables, in memory of their own.
//
// Not from malloc: the malloc that is compared then serves only what a workload itself allocates.
// No page exists until a thread touches it, so each page lies where that thread's policy puts it.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace atl::workloads {

// 16 bytes, as in numa-query-tuning, section IV-B, and in the join that it takes from [15].
struct Record {
  std::int64_t key;
  std::int64_t value;
  bool operator==(const Record&) const = default;
  auto operator<=>(const Record&) const = default;
};

enum class Pages { kDefault, kHuge };  // kHuge: huge pages where the system lets a program ask

// An anonymous mapping; zeros until it is written.
class Mapping {
 public:
  // Throws std::bad_alloc.
  Mapping(std::size_t bytes, Pages pages);
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  Mapping(Mapping&& other) noexcept
      : begin_(std::exchange(other.begin_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Mapping& operator=(Mapping&&) = delete;
  ~Mapping();
  [[nodiscard]] void* begin() const { return begin_; }

 private:
  void* begin_;
  std::size_t bytes_;
};

// `count` items whose bytes are zero. Their type must be one that zero bytes make valid.
template <class T>
class Mapped {
 public:
  explicit Mapped(std::size_t count, Pages pages = Pages::kDefault)
      : mapping_(count * sizeof(T), pages), count_(count) {}
  [[nodiscard]] std::span<T> all() const { return {static_cast<T*>(mapping_.begin()), count_}; }
  [[nodiscard]] T& operator[](std::size_t at) const {
    return static_cast<T*>(mapping_.begin())[at];
  }
  [[nodiscard]] std::size_t size() const { return count_; }
  // So that the pages of items [first, last) are there.
  void touch(std::size_t first, std::size_t last) const {
    constexpr std::size_t kStep = 4096 / sizeof(T);  // no page is smaller
    for (; first < last; first += kStep) *reinterpret_cast<volatile char*>(&all()[first]) = 0;
  }

 private:
  Mapping mapping_;
  std::size_t count_;
};

using Rows = Mapped<Record>;

}  // namespace atl::workloads
