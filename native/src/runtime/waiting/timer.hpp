// A timer: one thread that calls due entries, and sleeps otherwise. The process has two: one for
// waits, and one for time limits, whose entries call stop callbacks of users. So a callback may
// wait until a time and take locks that are held over a wait; it delays other limits only.
//
// A thread starts with the first entry and never ends: a static object may sleep in its destructor.
// In a child of fork() it starts again, empty. It may run on all CPUs of the process, not only on
// those of the worker that started it, and receives no signals of the user's.
//
// Promises: entries ring in the order of their deadlines, equal ones in the order of `add`, and
// never too early. add and remove: O(log n), one lock.
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
  // Owned by the caller, which must not move it between add and remove.
  struct Entry {
    void (*ring)(Entry* entry) = nullptr;  // must not throw

   private:
    friend class Timer;
    detail::Deadline deadline;
    std::uint64_t number = 0;
    std::size_t at = kNowhere;
  };

  // Entries ring under its lock and must not take long.
  static Timer& waits();
  // Entries ring without a lock, so that one may be gone when `ring` has returned.
  static Timer& limits();

  // Throws RuntimeFault if the thread cannot be started.
  void add(Entry& entry, detail::Deadline deadline);
  // True: the entry will never ring. False: it has rung or, without the lock, perhaps still rings.
  bool remove(Entry& entry);

 private:
  static constexpr std::size_t kNowhere = ~std::size_t{0};

  explicit Timer(bool rings_locked) : rings_locked_(rings_locked) {}
  static Timer& at(std::size_t use);
  static void make_all();
  void start();
  [[noreturn]] void serve();
  static bool before(const Entry& a, const Entry& b);
  void put(std::size_t at, Entry* entry);
  void rise(std::size_t at);
  void sink(std::size_t at);
  void take(Entry& entry);

  const bool rings_locked_;
  std::mutex mutex_;
  std::condition_variable earlier_;  // the first entry has changed
  std::vector<Entry*> heap_;
  std::uint64_t last_number_ = 0;
  bool started_ = false;
};

}  // namespace atl::runtime
