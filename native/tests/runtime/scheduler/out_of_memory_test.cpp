// Out of memory at each place where a call of the runtime allocates: the k-th allocation fails, for
// every k until the call needs no more, once alone and once with all that follow it. The call
// throws bad_alloc or RuntimeFault, or does its work without; nothing is lost, nothing leaks (under
// AddressSanitizer), and the runtime works on.
//
// Only allocations of the thread that makes the call fail. There is one worker, so they are those
// of the call and of the tasks that it runs meanwhile: on_the_worker keeps them on its own thread.
//
// And how much some things allocate, or that they allocate nothing.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <coroutine>
#include <cstdlib>
#include <new>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "atoll/runtime.hpp"
#include "runtime/parts.hpp"
#include "scheduler/process.hpp"

// ThreadSanitizer has an operator new of its own, and would find nothing here: one worker.
#if !defined(__SANITIZE_THREAD__)

namespace {

enum class Refused { one, all_after };

struct Refusals {
  long allowed = 0;  // allocations until the refused one; less than 0: it was refused
  bool armed = false;
  Refused how = Refused::one;
  std::size_t bytes = 0;  // that were asked for, armed or not

  bool next(std::size_t size) {
    bytes += size;
    if (!armed) return false;
    --allowed;
    return how == Refused::one ? allowed == -1 : allowed < 0;
  }
};

thread_local constinit Refusals refusals;
// For what starts threads.
constinit std::atomic<long> allowed_everywhere{-1};  // -1: all

bool refuse(std::size_t bytes) {
  if (refusals.next(bytes)) return true;
  return allowed_everywhere.load(std::memory_order_relaxed) >= 0 &&
         allowed_everywhere.fetch_sub(1, std::memory_order_relaxed) == 0;
}

void* allocate(std::size_t bytes, std::size_t alignment) {
  const std::size_t whole = (bytes + alignment - 1) / alignment * alignment;
  void* const memory = refuse(bytes) ? nullptr : std::aligned_alloc(alignment, whole);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

[[gnu::noinline]] void* operator new(std::size_t bytes) {
  void* const memory = refuse(bytes) ? nullptr : std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
// Not inlined, or gcc takes them for a mismatched pair. AddressSanitizer has an own `new
// (nothrow)`, which std::stable_sort uses with our `delete`.
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return refuse(bytes) ? nullptr : std::malloc(bytes);
}
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<std::size_t>(alignment));
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

// Stacks and placed memory.
extern "C" void* mmap(void* address, std::size_t bytes, int protection, int flags, int file,
                      off_t offset) noexcept {
  if (refuse(0)) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return reinterpret_cast<void*>(
      syscall(SYS_mmap, address, bytes, protection, flags, file, offset));
}

namespace {

using namespace std::chrono_literals;
using atl::test::fib;

atl::RuntimeOptions one_worker() {
  atl::RuntimeOptions options = atl::test::with_workers(1);
  options.stacks.bytes = std::size_t{1} << 20;  // for deep recursion under AddressSanitizer
  return options;
}

// Not with `run`: the calling thread may stand in for a worker that sleeps, and the worker's own
// thread may resume the task.
template <class Function>
void on_the_worker(atl::Runtime& runtime, Function&& function) {
  runtime.spawn(std::forward<Function>(function)).join();
}

// Calls `call` until it needs no allocation that is refused. It returns whether its answer was
// right; what it throws besides memory's faults ends the test.
template <class Call>
void with_every_refusal(Call&& call, long most = 100'000) {
  for (const Refused how : {Refused::one, Refused::all_after}) {
    long refused = 0;
    for (bool over = false; !over; ++refused) {
      ASSERT_LT(refused, most);
      SCOPED_TRACE("allocation " + std::to_string(refused) + " refused, " +
                   (how == Refused::one ? "alone" : "with all after it"));
      bool right = true;
      refusals = {refused, true, how};
      try {
        right = call();
      } catch (const std::bad_alloc&) {
      } catch (const atl::RuntimeFault&) {
      }
      over = refusals.allowed >= 0;
      refusals.armed = false;
      ASSERT_TRUE(right);
    }
  }
}

// The same for a call within a task; after each refusal the runtime still runs tasks.
template <class Call>
void in_a_task(Call&& call) {
  atl::Runtime runtime(one_worker());
  on_the_worker(runtime, [&] {
    with_every_refusal([&] {
      const bool armed = std::exchange(refusals.armed, false);
      const bool works = fib(3) == 2 && atl::spawn([] { return 7; }).join() == 7;
      refusals.armed = armed;
      return works && call();
    });
  });
  EXPECT_EQ(runtime.run([] { return fib(10); }), 55);
}

TEST(OutOfMemory, ARuntimeIsMadeOrNot) {
  for (long allowed = 0, over = 0; over == 0; ++allowed) {
    SCOPED_TRACE(allowed);
    allowed_everywhere = allowed;
    try {
      atl::RuntimeOptions options = atl::test::with_workers(2);
      atl::Runtime runtime(options);
      over = allowed_everywhere.exchange(-1) >= 0 ? 1 : 0;
      EXPECT_EQ(runtime.run([] { return fib(5); }), 5);
    } catch (const std::bad_alloc&) {
    } catch (const atl::RuntimeFault&) {
    }
    allowed_everywhere = -1;
  }
}

TEST(OutOfMemory, TheFirstLookAtForksThrowsOrWorks) {
  refusals = {0, true, Refused::all_after};
  try {
    static_cast<void>(atl::runtime::forks_before());
  } catch (const std::bad_alloc&) {
  }
  refusals.armed = false;
  EXPECT_EQ(atl::runtime::forks_before(), 0U);
}

TEST(OutOfMemory, WorkersAndGovernorGoOn) {
  atl::RuntimeOptions options = atl::test::with_workers(4);
  options.interval = 1ms;
  atl::Runtime runtime(options);
  for (long allowed = 0; allowed < 100; ++allowed) {
    allowed_everywhere = allowed;
    try {
      runtime.set_spread(1 + static_cast<int>(allowed % 4));
      runtime.run([] { EXPECT_EQ(fib(12), 144); });
    } catch (const std::bad_alloc&) {
    } catch (const atl::RuntimeFault&) {  // fewer chiplets than the workers need
    }
    allowed_everywhere = -1;
  }
  EXPECT_EQ(runtime.run([] { return fib(10); }), 55);
}

TEST(OutOfMemory, AThreadSpawnsAndRuns) {
  atl::Runtime runtime(one_worker());
  std::atomic<int> ran{0};
  with_every_refusal([&] {
    const int before = ran;
    atl::Task<int> task = runtime.spawn([&] { return ++ran; });
    runtime.run([&] { ++ran; });
    return task.join() > before && ran == before + 2;
  });
}

TEST(OutOfMemory, AThreadMakesGroupsAndLooks) {
  atl::RuntimeOptions options = atl::test::with_workers(4);
  options.trace_events = 100;
  atl::Runtime runtime(options);
  with_every_refusal([&] {
    atl::Group group(runtime, {.threads = 2});
    const bool right = group.run([] { return 3; }) == 3;
    group.set_spread(2);
    return right && group.workers().size() == 2 && !group.reason().empty();
  });
  with_every_refusal([&] {
    return runtime.profile().workers.size() == 4 && runtime.counts().size() == 4 &&
           runtime.cores().size() == 4 && runtime.node_map().node_of_rank.size() == 4;
  });
  EXPECT_EQ(runtime.run([] { return fib(10); }), 55);
}

// A move that found no memory half way is made by the next call, or by the governor's next look.
TEST(OutOfMemory, NoMoveOfTheWorkersIsForgotten) {
  const auto sits = [](const atl::Runtime& runtime) {
    std::set<int> chiplets;
    for (const int core : runtime.cores()) {
      chiplets.insert(runtime.places().cores[static_cast<std::size_t>(core)].chiplet);
    }
    return runtime.spread() == static_cast<int>(chiplets.size());
  };
  for (const auto interval : {1ms, 3'600'000ms}) {
    atl::RuntimeOptions options = atl::test::with_workers(2);
    options.interval = interval;
    atl::Runtime runtime(options);
    const atl::Group group(runtime, {.threads = 2});
    int spread = 2;
    with_every_refusal([&] {
      spread = 3 - spread;
      try {
        runtime.set_spread(spread);
      } catch (const std::bad_alloc&) {
        const bool armed = std::exchange(refusals.armed, false);
        if (interval == 1ms) {
          EXPECT_TRUE(atl::test::soon([&] { return sits(runtime); }));
        } else {
          runtime.set_spread(spread);
        }
        refusals.armed = armed;
      }
      return sits(runtime);
    });
  }
}

TEST(OutOfMemory, TasksAreSpawnedOrNot) {
  in_a_task([] {
    int ran = 0;
    int spawned = 0;
    {
      std::vector<atl::Task<>> tasks;
      tasks.reserve(30);
      for (int i = 0; i < 30; ++i) {
        tasks.push_back(atl::spawn([&ran] { ++ran; }));
        ++spawned;
      }
    }
    return ran == spawned;
  });
}

TEST(OutOfMemory, WhatWasSpawnedBeforeAFaultRuns) {
  in_a_task([] {
    int ran = 0;
    int spawned = 0;
    bool threw = false;
    {
      std::vector<atl::Task<>> tasks;
      try {
        for (int i = 0; i < 10; ++i) {
          tasks.push_back(atl::spawn([&ran] { ++ran; }));
          ++spawned;
        }
      } catch (const std::bad_alloc&) {
        threw = true;
      }
      // A vector that could not grow has dropped the handle, which waited.
      for (atl::Task<>& task : tasks) task.join();
    }
    return threw ? ran == spawned || ran == spawned + 1 : ran == 10;
  });
}

// Deep enough for the deque to grow.
long chain(int depth) {
  if (depth == 0) return 0;
  auto child = atl::fork([] { return 1L; });
  const long below = chain(depth - 1);
  return below + child.join();
}

TEST(OutOfMemory, AForkFindsTheDequeFull) {
  in_a_task([] { return chain(1500) == 1500; });
}

TEST(OutOfMemory, AScopeKeepsWhatItHas) {
  in_a_task([] {
    int ran = 0;
    int forked = 0;
    try {
      atl::Scope scope;
      for (int i = 0; i < 50; ++i) {
        scope.fork([&ran] { ++ran; });
        ++forked;
      }
      scope.request_stop();
      scope.join();
    } catch (const std::bad_alloc&) {
      return ran == forked;
    }
    return ran == 50;
  });
}

TEST(OutOfMemory, LoopsAndAllDo) {
  in_a_task([] {
    std::atomic<int> sum{0};
    atl::parallel_for(0, 100, [&](int i) { sum += i; }, 1);
    return sum == 4950;
  });
  in_a_task([] {
    return atl::parallel_reduce(
               0L, 1000L, 0L, [](long i) { return i; }, std::plus<>(), 1) == 499'500;
  });
  in_a_task([] {
    int calls = 0;
    atl::all_do([&](int) { ++calls; });
    return calls == 1;
  });
}

TEST(OutOfMemory, PlacedTasksAndGroupsInTasks) {
  in_a_task([] {
    return atl::call(atl::on_worker(0), [] { return 5; }) == 5 &&
           atl::spawn(atl::on_node(0), [] { return 6; }).join() == 6;
  });
}

TEST(OutOfMemory, Waiting) {
  in_a_task([] {
    atl::Event event;
    auto other = atl::spawn([&] { event.set(); });
    event.wait();
    other.join();
    return event.is_set();
  });
  in_a_task([] {
    atl::Event never;
    return !never.wait_for(1us);
  });
  in_a_task([] {
    atl::Mutex mutex;
    atl::ConditionVariable changed;
    bool ready = false;
    auto other = atl::spawn([&] {
      const std::lock_guard lock(mutex);
      ready = true;
      changed.notify_one();
    });
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return ready; });
    }
    other.join();
    return ready;
  });
  in_a_task([] {
    atl::Barrier barrier(2);
    auto other = atl::spawn([&] { barrier.arrive_and_wait(); });
    barrier.arrive_and_wait();
    other.join();
    return true;
  });
  in_a_task([] {
    atl::sleep_for(1us);
    return true;
  });
  in_a_task([] { return atl::blocking([] { return 9; }) == 9; });
}

TEST(OutOfMemory, AnEventWakesMoreThanTheDequeHolds) {
  atl::Runtime runtime(one_worker());
  on_the_worker(runtime, [] {
    constexpr int kTasks = 1500;
    atl::Event open;
    int waiting = 0;
    int through = 0;
    const auto waits = [&]() -> atl::Coro<> {
      ++waiting;
      co_await open;
      ++through;
    };
    std::vector<atl::Task<>> tasks;
    for (int each = 0; each < kTasks; ++each) {
      tasks.push_back(atl::spawn(waits()));
      while (waiting <= each) atl::yield();  // so that spawning does not make the deque grow
    }
    refusals = {0, true, Refused::all_after};
    open.set();
    refusals.armed = false;
    for (atl::Task<>& task : tasks) task.join();
    EXPECT_EQ(through, kTasks);
  });
}

TEST(OutOfMemory, MoreTasksYieldThanTheirQueueHolds) {
  atl::Runtime runtime(one_worker());
  on_the_worker(runtime, [] {
    constexpr int kTasks = 100;
    atl::Event open;
    int waiting = 0;
    int through = 0;
    std::vector<atl::Task<>> tasks;
    for (int each = 0; each < kTasks; ++each) {
      tasks.push_back(atl::spawn([&] {
        ++waiting;
        open.wait();
        for (int turn = 0; turn < 200; ++turn) atl::yield();
        ++through;
      }));
      while (waiting <= each) atl::yield();
    }
    refusals = {0, true, Refused::all_after};
    open.set();
    while (through < kTasks) atl::yield();
    refusals.armed = false;
    for (atl::Task<>& task : tasks) task.join();
  });
}

TEST(OutOfMemory, StopsAndTaskLocals) {
  in_a_task([] {
    atl::Event never;
    auto task = atl::spawn([&] { return never.wait(atl::this_task::stop_token()); });
    atl::yield();
    task.request_stop();
    return !task.join();
  });
  in_a_task([] {
    static atl::TaskLocal<int> local([] { return 4; });
    return atl::spawn([] { return *local; }).join() == 4;
  });
}

TEST(OutOfMemory, TheEndOfAHandleAllocatesNothing) {
  atl::Runtime runtime(one_worker());
  on_the_worker(runtime, [] {
    for (const bool done : {true, false}) {
      std::optional<atl::Task<>> task(atl::spawn([] {}));
      while (done && !task->done()) atl::yield();
      refusals = {0, true, Refused::all_after};
      task.reset();
      refusals.armed = false;
      EXPECT_EQ(refusals.allowed, 0) << "it asked for memory";
    }
  });
}

// Its frame is all, rounded up to 16 bytes.
TEST(MemoryUse, OfASpawnedCoroThatAwaitsAnEvent) {
  atl::Runtime runtime(one_worker());
  on_the_worker(runtime, [] {
    constexpr std::size_t kCoros = 6400;  // whole batches
    struct Waits {
      static atl::Coro<> on(atl::Event& event) { co_await event; }
    };
    atl::Event event;
    std::vector<atl::Task<>> tasks;
    tasks.reserve(kCoros);
    const std::size_t before = refusals.bytes;
    for (std::size_t at = 0; at < kCoros; ++at) {
      tasks.push_back(atl::spawn(Waits::on(event)));
      atl::yield();
    }
    EXPECT_LE((refusals.bytes - before) / kCoros, 128U);
    event.set();
    for (atl::Task<>& task : tasks) task.join();
  });
}

struct Coroutine {
  struct promise_type {
    Coroutine get_return_object() { return {}; }
    std::suspend_never initial_suspend() { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { throw; }
  };
};

Coroutine twice(int number, int& result) {
  result = 2 * co_await atl::spawn([=] { return number; });
}

TEST(OutOfMemory, ACoroutineAwaits) {
  in_a_task([] {
    int result = 0;
    twice(4, result);
    for (int turn = 0; result == 0 && turn < 1000; ++turn) atl::yield();
    return result == 8;
  });
}

TEST(OutOfMemory, ChannelsAndSemaphores) {
  in_a_task([] {
    atl::Channel<int> numbers(2);
    auto other = atl::spawn([&] {
      struct Closing {
        atl::Channel<int>& channel;
        ~Closing() { channel.close(); }
      } closing{numbers};
      for (int number = 1; number <= 5; ++number) {
        numbers.push(number, atl::this_task::stop_token());
      }
    });
    int last = 0;
    bool in_order = true;
    while (const std::optional<int> number = numbers.pop()) {
      in_order = in_order && *number > last;
      last = *number;
    }
    other.join();
    return in_order;
  });
  in_a_task([] {
    atl::Semaphore permits(1);
    int inside = 0;
    bool alone = true;
    atl::Scope scope;
    for (int child = 0; child < 3; ++child) {
      scope.fork([&] {
        permits.acquire();
        struct Releasing {
          atl::Semaphore& permits;
          int& inside;
          ~Releasing() {
            --inside;
            permits.release();
          }
        } releasing{permits, inside};
        alone = ++inside == 1 && alone;
        atl::yield();
      });
    }
    scope.join();
    return alone;
  });
}

TEST(OutOfMemory, WhenAndInvokeAndSortAndScan) {
  in_a_task([] {
    std::vector<atl::Task<int>> tasks;
    for (int number = 0; number < 3; ++number) {
      tasks.push_back(atl::spawn([number] { return number; }));
    }
    if (!atl::when_any(tasks)) return false;
    return atl::when_all(std::move(tasks)) == std::vector<int>{0, 1, 2};
  });
  in_a_task([] {
    int first = 0;
    int second = 0;
    atl::parallel_invoke([&] { first = 1; }, [&] { second = 2; });
    return first == 1 && second == 2;
  });
  std::vector<int> numbers(5000);
  in_a_task([&] {
    for (std::size_t at = 0; at < numbers.size(); ++at) {
      numbers[at] = static_cast<int>(at * 7919 % numbers.size());
    }
    atl::parallel_sort(numbers.begin(), numbers.end());
    return std::ranges::is_sorted(numbers);
  });
  std::vector<long> sums(5000);
  in_a_task([&] {
    std::ranges::fill(numbers, 1);
    atl::parallel_inclusive_scan(numbers.begin(), numbers.end(), sums.begin(), 0L, std::plus<>());
    return sums.back() == 5000;
  });
}

TEST(OutOfMemory, WorkerLocalsLimitsAndUrgentTasks) {
  in_a_task([] {
    atl::WorkerLocal<int> sums;
    atl::parallel_for(0, 10, [&](int number) { *sums.lease() += number; }, 1);
    return sums.combine(std::plus<>()) == 45;
  });
  in_a_task([] {
    const atl::Stoppable part(1h);
    int calls = 0;
    atl::parallel_for(0, 3, [&](int) { ++calls; });
    return calls == 3;
  });
  in_a_task([] { return atl::call(atl::urgently(), [] { return 3; }) == 3; });
}

TEST(OutOfMemory, Arrays) {
  atl::Runtime runtime(atl::test::with_workers(4));
  const atl::NodeMap map = runtime.node_map();
  with_every_refusal([&] {
    auto array = atl::Array<int>::partitioned(10'000, map);
    std::iota(array.begin(), array.end(), 0);
    atl::Replicated<int> copies(10, map);
    copies.update([](std::span<int> copy) { copy[7] = 42; });
    return array[9'999] == 9'999 && array.parts() == 4 && copies.local()[7] == 42;
  });
}

}  // namespace

#endif
