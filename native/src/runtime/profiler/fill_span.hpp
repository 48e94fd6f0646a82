// Fills between the begin and the end of a span of a worker's time, and the sums of such spans.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "atoll/runtime/profile.hpp"
#include "perf_group.hpp"

namespace atl::runtime {

// Sums over spans. One thread adds; any thread may read.
struct FillBook {
  detail::OwnCount fills_ns;
  std::array<detail::OwnCount, kFillSources> fills;
  // Sources that lacked a count at some time (one bit each): they have no sum.
  std::atomic<std::uint8_t> fills_missing{0};
  std::atomic<double> fills_share{1};  // the smallest running share
};

// What a book says; `table`: whose events were counted, null: none.
[[nodiscard]] FillCounts fills_of(const FillBook& book, const FillTable* table);

// A span that is counted, or not: counters are read only so often that reading takes at most half a
// percent of the time, whatever one reading costs (rdpmc some 0.1 us, read(2) some 2 us).
class FillSpan {
 public:
  [[nodiscard]] bool due(std::int64_t now_ns) const noexcept { return now_ns >= next_ns_; }
  [[nodiscard]] bool counts() const noexcept { return counts_; }
  void start(const CounterReader& reader, std::int64_t now_ns) noexcept;
  // Adds what the counters say since `start` to the book.
  void book(const CounterReader& reader, const FillTable& table, std::int64_t now_ns,
            FillBook& book) noexcept;
  void forget() noexcept { counts_ = false; }

 private:
  bool counts_ = false;
  std::int64_t begin_ns_ = 0;
  std::int64_t next_ns_ = 0;
  FillReading from_;
};

}  // namespace atl::runtime
