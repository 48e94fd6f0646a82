#include "recorder.hpp"

#include <new>
#include <span>

namespace atl::runtime {

namespace {

constinit thread_local Recorder* this_recorder = nullptr;

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
  if (fills_ != nullptr && span_fills_.due(now)) [[unlikely]]
    span_fills_.start(*fills_, now);
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
  if (span_fills_.counts()) [[unlikely]]
    span_fills_.book(*fills_, *table_, now, *span_book_);
  span_book_ = nullptr;
}

void Recorder::set_fills(const CounterReader* fills, const FillTable* table) noexcept {
  span_fills_.forget();
  type_fills_.forget();
  fills_ = fills;
  table_ = table;
}

TypeBook& Recorder::type_book(std::uintptr_t type) noexcept {
  for (TypeBook& book : std::span(type_books_).first(type_books_.size() - 1)) {
    const std::uintptr_t known = book.type.load(std::memory_order_relaxed);
    if (known == type) return book;
    if (known != TypeBook::kNoType) continue;
    book.type.store(type, std::memory_order_relaxed);  // its sums are still 0
    return book;
  }
  type_books_.back().type.store(kOtherTypes, std::memory_order_relaxed);
  return type_books_.back();
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
