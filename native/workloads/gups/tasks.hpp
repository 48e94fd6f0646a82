// RandomAccess by suspended tasks: stackless coroutines that take turns on one worker.
#pragma once

#include <array>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <utility>
#include <vector>

#include "gups/sequence.hpp"
#include "gups/table.hpp"

namespace atl::kernels {

inline constexpr std::size_t kBatch = 8;   // updates of a task between two suspensions
inline constexpr std::size_t kTasks = 16;  // of a piece
static_assert(kBatch * kTasks <= kLookAhead);

// A coroutine that somebody else resumes until it is done.
class Strand {
 public:
  struct promise_type {
    Strand get_return_object() {
      return Strand(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    std::suspend_always initial_suspend() const noexcept { return {}; }
    std::suspend_always final_suspend() const noexcept { return {}; }
    void return_void() const {}
    void unhandled_exception() const { std::terminate(); }  // nothing in it throws
  };
  Strand(Strand&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Strand& operator=(Strand&&) = delete;
  ~Strand() {
    if (handle_) handle_.destroy();
  }
  // Whether there is more to do.
  bool go_on() const {
    if (!handle_.done()) handle_.resume();
    return !handle_.done();
  }

 private:
  explicit Strand(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  std::coroutine_handle<promise_type> handle_;
};

struct Sequence {
  std::uint64_t value;
  std::uint64_t batches;  // that nobody has taken
};

inline Strand batches_of(Table table, Sequence& sequence) {
  std::array<std::uint64_t, kBatch> values;
  while (sequence.batches != 0) {
    --sequence.batches;
    std::uint64_t value = sequence.value;
    for (std::uint64_t& each : values) {
      each = value = after(value);
      table.prefetch(value);
    }
    sequence.value = value;
    co_await std::suspend_always();
    for (const std::uint64_t each : values) table.update(each);
  }
}

// Does the updates of the range.
inline void update_by_tasks(Table table, Range range) {
  Sequence sequence{start(range.first), (range.last - range.first) / kBatch};
  const std::uint64_t rest = (range.last - range.first) % kBatch;
  std::vector<Strand> strands;
  for (std::size_t task = 0; task < kTasks; ++task) {
    strands.push_back(batches_of(table, sequence));
  }
  for (bool busy = true; busy;) {
    busy = false;
    for (const Strand& strand : strands) busy |= strand.go_on();
  }
  for (std::uint64_t at = 0; at < rest; ++at) {
    table.update(sequence.value = after(sequence.value));
  }
}

}  // namespace atl::kernels
