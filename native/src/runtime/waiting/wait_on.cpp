#include "wait_on.hpp"

#include <pthread.h>

#include <array>
#include <cstddef>
#include <new>
#include <optional>
#include <utility>

#include "suspension.hpp"
#include "timer.hpp"

namespace atl::runtime {

namespace {

using detail::Waiter;

// Distinct keys, each with its queue.
struct alignas(128) Bucket {
  std::mutex mutex;
  Waiting* keys = nullptr;

  // The link that points to the first of this key, or the null one at the end.
  Waiting** find(const void* key) {
    Waiting** link = &keys;
    while (*link != nullptr && (*link)->key != key) link = &(*link)->next_key;
    return link;
  }

  void join(Waiting& self) {
    Waiting** const link = find(self.key);
    Waiting* const first = *link;
    self.queued = true;
    if (first == nullptr) {
      self.last = &self;
      *link = &self;
    } else if (self.woken_in_vain > 0) {
      self.next = first;
      first->previous = &self;
      self.last = first->last;
      self.next_key = std::exchange(first->next_key, nullptr);
      *link = &self;
    } else {
      self.previous = first->last;
      first->last->next = &self;
      first->last = &self;
    }
  }

  void leave(Waiting& self) {
    self.queued = false;
    Waiting** const link = find(self.key);
    if (*link != &self) {
      self.previous->next = self.next;
      if (self.next != nullptr) {
        self.next->previous = self.previous;
      } else {
        (*link)->last = self.previous;
      }
    } else if (self.next != nullptr) {
      self.next->previous = nullptr;
      self.next->last = self.last;
      self.next->next_key = self.next_key;
      *link = self.next;
    } else {
      *link = self.next_key;
    }
  }
};

// Enough to separate two busy keys most of the time on the largest machines. Never destroyed:
// static objects may wait in their destructors.
constexpr std::size_t kBuckets = 512;
constinit std::array<Bucket, kBuckets> buckets;

Bucket& bucket_of(const void* key) {
  // Fibonacci hashing (Knuth, volume 3, 6.4): the top bits of a product by 2^64 / golden ratio.
  constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;
  return buckets[reinterpret_cast<std::uintptr_t>(key) * kGolden >> 55];
}
static_assert(kBuckets == 1 << (64 - 55));

// A child of fork() has no waiters, and a thread of the parent may hold a lock.
void renew_buckets() {
  for (Bucket& bucket : buckets) ::new (&bucket) Bucket;
}
// When the program starts, so that no wait looks whether it has been done.
[[maybe_unused]] const int renewal = pthread_atfork(nullptr, nullptr, renew_buckets);

// The deadline is over, or a stop was requested.
void end_early(Waiting& waiting, WaitEnd how) {
  Bucket& bucket = bucket_of(waiting.key);
  std::unique_lock lock(bucket.mutex);
  if (waiting.over) return;
  waiting.over = true;
  waiting.end = how;
  if (!waiting.queued) return;  // on its way there, where it will see this
  bucket.leave(waiting);
  const Waiter waiter = waiting.waiter;
  lock.unlock();
  detail::resume(waiter);
}

struct OnStop {
  Waiting* waiting;
  void operator()() const noexcept { end_early(*waiting, WaitEnd::stopped); }
};

struct Alarm : Timer::Entry {
  explicit Alarm(Waiting& owner) : waiting(&owner) {
    ring = [](Entry* entry) { end_early(*static_cast<Alarm*>(entry)->waiting, WaitEnd::late); };
  }
  ~Alarm() {
    if (set) Timer::waits().remove(*this);
  }
  Waiting* waiting;
  bool set = false;
};

// With `still` called, and the waiter queued, in one step under the lock.
template <class Still>
[[gnu::always_inline]] inline void join_if(Waiting& self, Still&& still) {
  suspend_inline([&](Waiter handle) {
    Bucket& bucket = bucket_of(self.key);
    const std::lock_guard lock(bucket.mutex);
    if (self.over) return false;
    if (!still()) {
      self.over = true;
      return false;
    }
    self.waiter = handle;
    bucket.join(self);
    return true;  // from the unlocking on, this frame may be gone
  });
}

}  // namespace

[[gnu::noinline]] WaitEnd wait_while(const void* key, bool (*still)(void* closure), void* closure,
                                     const WaitTerms& terms) {
  if (terms.stop != nullptr && terms.stop->stop_requested()) return WaitEnd::stopped;
  Waiting self{key, terms.woken_in_vain};
  Alarm alarm(self);
  if (terms.deadline != detail::kNever) {
    Timer::waits().add(alarm, terms.deadline);
    alarm.set = true;
  }
  std::optional<std::stop_callback<OnStop>> on_stop;
  if (terms.stop != nullptr && terms.stop->stop_possible()) {
    on_stop.emplace(*terms.stop, OnStop{&self});
  }
  join_if(self, [=] { return still(closure); });
  return self.end;
}

ATL_RT_RETURNS_BY_JUMP WaitEnd wait_on(const std::atomic<std::uint32_t>& word,
                                       std::uint32_t expected, const WaitTerms& terms) {
  const auto unchanged = [&] {
    // Acquire: if it has changed, what was written before the change.
    return (word.load(std::memory_order_acquire) & terms.mask) == expected;
  };
  if (terms.stop != nullptr || terms.deadline != detail::kNever) [[unlikely]] {
    const auto call = [](void* closure) { return (*static_cast<decltype(unchanged)*>(closure))(); };
    return wait_while(&word, call, const_cast<void*>(static_cast<const void*>(&unchanged)), terms);
  }
  Waiting self{&word, terms.woken_in_vain};
  join_if(self, unchanged);
  return self.end;
}

WaitQueue::WaitQueue(const void* key) : key_(key), lock_(bucket_of(key).mutex) {}

Waiting* WaitQueue::first() const { return *bucket_of(key_).find(key_); }

Waiter WaitQueue::take(WaitEnd end) {
  Waiting* const taken = first();
  if (taken == nullptr) return Waiter::none;
  bucket_of(key_).leave(*taken);
  taken->over = true;
  taken->end = end;
  return taken->waiter;
}

void wake_one(const void* key) {
  WaitQueue queue(key);
  const Waiter waiter = queue.take(WaitEnd::woken);
  queue.unlock();
  if (waiter != Waiter::none) detail::resume(waiter);
}

// In one step, so that later waiters do not keep the caller from ending. Nobody else resumes them:
// their wait is over.
Waiting* WaitQueue::take_all() {
  Waiting** const link = bucket_of(key_).find(key_);
  Waiting* const first = *link;
  if (first != nullptr) *link = first->next_key;
  for (Waiting* each = first; each != nullptr; each = each->next) {
    each->queued = false;
    each->over = true;
    each->end = WaitEnd::woken;
  }
  return first;
}

void resume_all(Waiting* first, Resumptions& resumed) {
  while (first != nullptr) {
    Waiting* const next = first->next;  // before its frame is gone
    resumed.add(std::exchange(first, next)->waiter);
  }
}

void wake_all(const void* key, Resumptions& resumed) {
  WaitQueue queue(key);
  Waiting* const waiters = queue.take_all();
  queue.unlock();
  resume_all(waiters, resumed);
}

void wake_all(const void* key) {
  Resumptions resumed;
  wake_all(key, resumed);
}

}  // namespace atl::runtime
