// A channel: a bounded queue between tasks, for example the exchange between two operators.
//
//   atl::Channel<Batch> batches(16);
//   auto scan = atl::spawn([&] { while (...) batches.push(read()); batches.close(); });
//   while (std::optional<Batch> batch = batches.pop()) use(*batch);
//
// Promises
//  - Any number of tasks, and of threads that are not workers, may push and pop. Each item is
//    popped once; items of one task are popped in the order in which it pushed them.
//  - `push` waits while the channel is full, so that a fast producer is slowed down to its
//    consumers; `pop` waits while it is empty.
//  - After `close` a push returns false; a pop returns what is left and then nothing.
//  - A call that was stopped, or is over its time limit, returns as if the channel were closed. An
//    item that was not pushed is as before: it was not moved from.
//  - It must outlive all calls. Items that are left are destroyed with it.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>

#include "atoll/runtime/condition_variable.hpp"
#include "atoll/runtime/export.hpp"

namespace atl {

namespace detail {
[[noreturn]] ATOLL_EXPORT void fault_no_capacity();
}

template <class Item>
class Channel {
 public:
  // Throws RuntimeFault if the capacity is 0.
  explicit Channel(std::size_t capacity) : capacity_(capacity) {
    if (capacity == 0) detail::fault_no_capacity();
  }
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // Returns whether the item was pushed.
  template <class Given>
  bool push(Given&& item, const std::stop_token& stop = {}) {
    return push_until(std::forward<Given>(item), detail::kNever, stop);
  }
  template <class Given, class Rep, class Period>
  bool push_for(Given&& item, const std::chrono::duration<Rep, Period>& duration,
                const std::stop_token& stop = {}) {
    return push_until(std::forward<Given>(item), detail::deadline_after(duration), stop);
  }
  template <class Given, class Clock, class Duration>
  bool push_until(Given&& item, const std::chrono::time_point<Clock, Duration>& time,
                  const std::stop_token& stop = {}) {
    std::unique_lock lock(mutex_);
    room_.wait_until(lock, time, [this] { return closed_ || items_.size() < capacity_; }, stop);
    return put(lock, std::forward<Given>(item));
  }
  // Without waiting.
  template <class Given>
  bool try_push(Given&& item) {
    std::unique_lock lock(mutex_);
    return put(lock, std::forward<Given>(item));
  }

  // The oldest item, or nothing.
  std::optional<Item> pop(const std::stop_token& stop = {}) {
    return pop_until(detail::kNever, stop);
  }
  template <class Rep, class Period>
  std::optional<Item> pop_for(const std::chrono::duration<Rep, Period>& duration,
                              const std::stop_token& stop = {}) {
    return pop_until(detail::deadline_after(duration), stop);
  }
  template <class Clock, class Duration>
  std::optional<Item> pop_until(const std::chrono::time_point<Clock, Duration>& time,
                                const std::stop_token& stop = {}) {
    std::unique_lock lock(mutex_);
    filled_.wait_until(lock, time, [this] { return closed_ || !items_.empty(); }, stop);
    return get(lock);
  }
  // Without waiting.
  std::optional<Item> try_pop() {
    std::unique_lock lock(mutex_);
    return get(lock);
  }

  // Ends all waits. Closing it again does nothing.
  void close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    room_.notify_all();
    filled_.notify_all();
  }

 private:
  using Lock = ConditionVariable::Lock;

  template <class Given>
  bool put(Lock& lock, Given&& item) {
    if (closed_ || items_.size() >= capacity_) return false;
    or_pass_on(lock, room_, [&] { items_.push_back(std::forward<Given>(item)); });
    lock.unlock();
    filled_.notify_one();
    return true;
  }

  std::optional<Item> get(Lock& lock) {
    if (items_.empty()) return std::nullopt;
    std::optional<Item> item;
    or_pass_on(lock, filled_, [&] { item.emplace(std::move(items_.front())); });
    items_.pop_front();
    lock.unlock();
    room_.notify_one();
    return item;
  }

  // An item may throw, or memory lack: then another one that waits gets the notification of this
  // call, which may have been the only one.
  template <class Step>
  static void or_pass_on(Lock& lock, ConditionVariable& waited_for, Step&& step) {
    try {
      step();
    } catch (...) {
      lock.unlock();
      waited_for.notify_one();
      throw;
    }
  }

  const std::size_t capacity_;
  Mutex mutex_;
  ConditionVariable filled_, room_;
  std::deque<Item> items_;
  bool closed_ = false;
};

}  // namespace atl
