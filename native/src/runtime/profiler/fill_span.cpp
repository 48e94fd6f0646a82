#include "fill_span.hpp"

#include <algorithm>

#include "clock.hpp"

namespace atl::runtime {

namespace {

// The next span is counted after 200 times the time that the two readings of the last one took.
constexpr std::int64_t kPause = 200;

}  // namespace

void FillSpan::start(const CounterReader& reader, std::int64_t now_ns) noexcept {
  const std::optional<FillReading> reading = reader.read();
  const std::int64_t after = runtime::now_ns();
  next_ns_ = after + kPause * 2 * (after - now_ns);  // the end of the span is read, too
  if (!reading) return;
  from_ = *reading;
  begin_ns_ = now_ns;
  counts_ = true;
}

void FillSpan::book(const CounterReader& reader, const FillTable& table, std::int64_t now_ns,
                    FillBook& book) noexcept {
  counts_ = false;
  const std::optional<FillReading> reading = reader.read();
  if (!reading) return;
  const FillCounts fills = fills_between(table, from_, *reading);
  // A span that is shorter than the kernel's turns may have had no turn on the PMU at all.
  if (fills.running_share <= 0) return;
  book.fills_ns.add(static_cast<std::uint64_t>(now_ns - begin_ns_));
  std::uint8_t missing = book.fills_missing.load(std::memory_order_relaxed);
  for (std::size_t i = 0; i < kFillSources; ++i) {
    if (fills.by_source[i]) {
      book.fills[i].add(*fills.by_source[i]);
    } else {
      missing = static_cast<std::uint8_t>(missing | 1U << i);
    }
  }
  book.fills_missing.store(missing, std::memory_order_relaxed);
  book.fills_share.store(
      std::min(book.fills_share.load(std::memory_order_relaxed), fills.running_share),
      std::memory_order_relaxed);
}

FillCounts fills_of(const FillBook& book, const FillTable* table) {
  FillCounts fills;
  if (table == nullptr || book.fills_ns.read() == 0) return fills;
  const unsigned missing = book.fills_missing.load(std::memory_order_relaxed);
  for (const FillEvent& event : table->events) {
    const auto source = static_cast<std::size_t>(event.source);
    if ((missing >> source & 1U) == 0) fills.by_source[source] = book.fills[source].read();
  }
  fills.running_share = book.fills_share.load(std::memory_order_relaxed);
  return fills;
}

}  // namespace atl::runtime
