#include "recorder.hpp"

#include <algorithm>
#include <new>

namespace atl::runtime {

namespace {

constinit thread_local Recorder* this_recorder = nullptr;

// Fills are read at a section's begin and end only so often that the system calls take at most
// half a percent of the time: the next span is counted after 200 times the time that the readings
// of the last one took.
constexpr std::int64_t kFillsPause = 200;

}  // namespace

Recorder::~Recorder() {
  for (std::atomic<SectionBook*>& book : books_) delete book.load(std::memory_order_relaxed);
}

Recorder* Recorder::current() noexcept {
  Recorder* recorder = this_recorder;
  // Not to be merged with another call's by inter-procedural passes (LTO) either.
  asm volatile("" : "+r"(recorder)::"memory");
  return recorder;
}

void Recorder::set_current(Recorder* recorder) noexcept { this_recorder = recorder; }

int Recorder::id_of(const char* name) {
  // Texts lie some 8 to 64 bytes apart.
  Known& known = known_[(reinterpret_cast<std::uintptr_t>(name) >> 3) % known_.size()];
  if (known.name != name) [[unlikely]]
    known = {name, section_id(name)};
  return known.id;
}

SectionBook& Recorder::book_of(int id) {
  std::atomic<SectionBook*>& place = books_[static_cast<std::size_t>(id)];
  SectionBook* book = place.load(std::memory_order_relaxed);
  if (book == nullptr) [[unlikely]] {
    book = new SectionBook;
    place.store(book, std::memory_order_release);  // with the zeros in it
  }
  return *book;
}

Section* Recorder::begin(Section& section) {
  Section* const outer = open_;
  const std::int64_t now = now_ns();
  const int id = id_of(section.name());
  book_of(id).entered.add();
  book_span(now);
  open_ = &section;
  start_span(section, now);
  if (trace_ != nullptr) [[unlikely]] {
    trace_->put(TraceKind::section_begin, static_cast<std::uint64_t>(id), now - origin_ns_);
  }
  return outer;
}

void Recorder::end(Section& section) {
  const std::int64_t now = now_ns();
  book_span(now);
  if (trace_ != nullptr) [[unlikely]] {
    trace_->put(TraceKind::section_end, static_cast<std::uint64_t>(id_of(section.name())),
                now - origin_ns_);
  }
  open_ = section.outer();
  if (open_ != nullptr) start_span(*open_, now);
}

void Recorder::suspend_sections() noexcept {
  const std::int64_t now = now_ns();
  book_span(now);
  if (trace_ != nullptr) [[unlikely]]
    trace_ends(open_, now);
  open_ = nullptr;
}

void Recorder::resume_sections(Section* section) noexcept {
  const std::int64_t now = now_ns();
  open_ = section;
  try {
    start_span(*section, now);
  } catch (const std::bad_alloc&) {  // of the first book here: this span is not counted
  }
  if (trace_ != nullptr) [[unlikely]]
    trace_outermost_first(section, now);
}

void Recorder::trace_ends(const Section* section, std::int64_t now) noexcept {
  for (; section != nullptr; section = section->outer()) {
    trace_->put(TraceKind::section_end, 0, now - origin_ns_);
  }
}

void Recorder::trace_outermost_first(const Section* section, std::int64_t now) {
  if (section->outer() != nullptr) trace_outermost_first(section->outer(), now);
  trace_->put(TraceKind::section_begin, static_cast<std::uint64_t>(id_of(section->name())),
              now - origin_ns_);
}

void Recorder::start_span(const Section& section, std::int64_t now) {
  span_book_ = &book_of(id_of(section.name()));
  span_begin_ns_ = now;
  span_counts_ = read_counts(*counts_);
  if (fills_ != nullptr && now >= next_fills_ns_) [[unlikely]]
    start_fills(now);
}

void Recorder::book_span(std::int64_t now) noexcept {
  if (span_book_ == nullptr) return;
  span_book_->ns.add(static_cast<std::uint64_t>(now - span_begin_ns_));
  for_each_count(
      [](const char*, detail::OwnCount& booked, std::uint64_t before,
         const detail::OwnCount& count) {
        // Most of the counters stand still in most spans.
        if (const std::uint64_t more = count.read() - before; more != 0) booked.add(more);
      },
      span_book_->counts, span_counts_, *counts_);
  if (span_has_fills_) [[unlikely]]
    book_fills(now);
  span_book_ = nullptr;
}

void Recorder::set_fills(const CounterReader* fills, const FillTable* table) noexcept {
  span_has_fills_ = false;
  fills_ = fills;
  table_ = table;
}

void Recorder::start_fills(std::int64_t now) noexcept {
  const std::optional<FillReading> reading = fills_->read();
  const std::int64_t after = now_ns();
  next_fills_ns_ = after + kFillsPause * 2 * (after - now);  // the end of the span is read, too
  if (!reading) return;
  span_fills_ = *reading;
  span_has_fills_ = true;
}

void Recorder::book_fills(std::int64_t now) noexcept {
  span_has_fills_ = false;
  const std::optional<FillReading> reading = fills_->read();
  if (!reading) return;
  const FillCounts fills = fills_between(*table_, span_fills_, *reading);
  SectionBook& book = *span_book_;
  // A span that is shorter than the kernel's turns may have had no turn on the PMU at all.
  if (fills.running_share <= 0) return;
  book.fills_ns.add(static_cast<std::uint64_t>(now - span_begin_ns_));
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

}  // namespace atl::runtime

namespace atl {

Section::Section(SectionName name) : name_(name.text()) {
  runtime::Recorder* recorder = runtime::Recorder::current();
  if (recorder == nullptr) return;
  counted_ = true;
  outer_ = recorder->begin(*this);
}

Section::~Section() {
  // The worker may be another one now.
  if (runtime::Recorder* recorder = counted_ ? runtime::Recorder::current() : nullptr) {
    recorder->end(*this);
  }
}

}  // namespace atl
