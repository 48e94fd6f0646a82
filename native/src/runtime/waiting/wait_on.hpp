// Waiting for a word of memory to change: a futex for tasks. Barrier, Mutex, condition variable,
// sleep, and waits for an Event that can end early are built on it.
//
// Waiters queue outside of the object that they wait for, in a table by its address (Pizlo,
// "Locking in WebKit", 2015). That makes the primitives small, and makes it correct to destroy one
// as soon as the wait for it is over: the thread that ends the wait changes the word first and then
// needs only its address.
//
// Promises
//  - For threads that take from the queue, `wait_on` reads the word and joins the queue in one
//    step, so that one of the two sides sees a change of the word before that.
//  - A wait may end spuriously (if an address is used again): callers check again.
//  - Queues are first in, first out. Joining, leaving and taking are O(1) except for addresses that
//    share a bucket.
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
  given,  // woken, and already owns what it waited for
  stopped,
  late,  // the deadline is over
};

struct WaitTerms {
  std::uint32_t mask = ~std::uint32_t{0};  // which bits of the word matter
  detail::Deadline deadline = detail::kNever;
  const std::stop_token* stop = nullptr;
  int woken_in_vain = 0;  // above 0: to the head of the queue
};

// A waiter, on its own frame. The bucket's lock protects all but the first two members.
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

// Waits while (word & mask) == expected, until woken, stopped, or late. The word must outlive the
// wait. Throws what suspending throws (no stack, no timer), and then has not waited.
WaitEnd wait_on(const std::atomic<std::uint32_t>& word, std::uint32_t expected,
                const WaitTerms& terms = {});

// Waits for `key` if `still(closure)`, which is called with the lock of its queue. Else as wait_on.
WaitEnd wait_while(const void* key, bool (*still)(void* closure), void* closure,
                   const WaitTerms& terms);

// A waiter that checks again sees what was written to the word before.
void wake_one(const void* key);
void wake_all(const void* key);

class Resumptions;
// Together with others, in the order of their queue.
void wake_all(const void* key, Resumptions& resumed);
void resume_all(Waiting* first, Resumptions& resumed);

// For callers that decide something in one step with taking a waiter.
class WaitQueue {
 public:
  explicit WaitQueue(const void* key);  // locks
  Waiting* first() const;
  // Takes the first; call `resume` for its waiter after the lock is released.
  detail::Waiter take(WaitEnd end);
  // Takes all as woken; call `resume_all` for them after the lock is released.
  Waiting* take_all();
  void unlock() { lock_.unlock(); }

 private:
  const void* key_;
  std::unique_lock<std::mutex> lock_;
};

}  // namespace atl::runtime
