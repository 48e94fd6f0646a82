// The process's timer: one thread that calls what is due, and sleeps otherwise.
//
// It starts with the first entry and is never ended: a static object may sleep in its destructor.
// In a child of fork() it starts anew, empty. It runs wherever the process may, not only where the
// worker sits that came first, and no signal of the user's lands on it.
//
// Promises: entries ring in the order of their deadlines, equal ones in the order of `add`; never
// too early. add and remove: O(log n), one lock.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "atoll/runtime/detail/deadline.hpp"

namespace atl::runtime {

class Timer {
 public:
  // The caller's; from add to remove it stays where it is.
  struct Entry {
    void (*ring)(Entry* entry) = nullptr;  // under the timer's lock; must not throw or take long

   private:
    friend class Timer;
    detail::Deadline deadline;
    std::uint64_t number = 0;
    std::size_t at = kNowhere;
  };

  static Timer& instance();

  // Throws RuntimeFault if the thread cannot be started.
  void add(Entry& entry, detail::Deadline deadline);
  // When it returns, the entry has rung or never will.
  void remove(Entry& entry);

 private:
  static constexpr std::size_t kNowhere = ~std::size_t{0};

  void start();
  [[noreturn]] void serve();
  static bool before(const Entry& a, const Entry& b);
  void put(std::size_t at, Entry* entry);
  void rise(std::size_t at);
  void sink(std::size_t at);
  void take(Entry& entry);

  std::mutex mutex_;
  std::condition_variable earlier_;  // the first entry is another
  std::vector<Entry*> heap_;
  std::uint64_t last_number_ = 0;
  bool started_ = false;
};

}  // namespace atl::runtime
