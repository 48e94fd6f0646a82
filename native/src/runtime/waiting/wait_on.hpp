// Waiting for a word of memory to change: a futex for tasks. Event, Barrier, Mutex, condition
// variable and sleep are written on it.
//
// Waiters queue up outside of what they wait for, in a table by its address (Pizlo, "Locking in
// WebKit", 2015). That makes the primitives small, and it is what makes it right to destroy one as
// soon as the wait for it is over: whoever ends the wait changes the word first and then needs no
// more than its address.
//
// Promises
//  - `wait_on` looks at the word and joins the queue as one step for whoever takes from the queue,
//    so that a change of the word before that is seen by one side or the other.
//  - A wait may end for no reason (an address is used anew): callers look again.
//  - Queues are first in, first out. Joining, leaving and taking are O(1) but for the addresses
//    that share a bucket.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <stop_token>

#include "atoll/runtime/detail/deadline.hpp"
#include "atoll/runtime/detail/suspend.hpp"

namespace atl::runtime {

enum class WaitEnd {
  changed,  // the word was not as expected: did not wait
  woken,
  given,  // woken, and what it waited for is already its own (Mutex)
  stopped,
  late,  // the deadline is over
};

struct WaitTerms {
  std::uint32_t mask = ~std::uint32_t{0};  // which bits of the word matter
  detail::Deadline deadline = detail::kNever;
  const std::stop_token* stop = nullptr;
  int woken_in_vain = 0;  // above 0: to the head of the queue
};

// Who waits; lies on its frame. All but the first two is under the bucket's lock.
struct Waiting {
  const void* const key;
  const int woken_in_vain;
  Waiting* next = nullptr;  // in the queue of the same key
  Waiting* previous = nullptr;
  Waiting* last = nullptr;      // of the queue; kept by its first
  Waiting* next_key = nullptr;  // the first of another key of the bucket; kept by the first
  detail::Waiter waiter = detail::Waiter::none;
  WaitEnd end = WaitEnd::changed;
  bool queued = false;
  bool over = false;
};

// Waits while (word & mask) == expected, until woken, asked to stop, or late. The word stays alive
// as long as the wait. Throws what suspending throws (no stack, no timer), and has not waited then.
WaitEnd wait_on(const std::atomic<std::uint32_t>& word, std::uint32_t expected,
                const WaitTerms& terms = {});

// What was written to the word before is seen by who looks again.
void wake_one(const void* key);
void wake_all(const void* key);

// For who has to decide something together with taking a waiter.
class WaitQueue {
 public:
  explicit WaitQueue(const void* key);  // locks
  Waiting* first() const;
  // Takes the first; `resume` has to be called for its waiter after the lock is gone.
  detail::Waiter take(WaitEnd end);
  void unlock() { lock_.unlock(); }

 private:
  const void* key_;
  std::unique_lock<std::mutex> lock_;
};

}  // namespace atl::runtime
