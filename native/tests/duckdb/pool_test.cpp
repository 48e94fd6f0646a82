// What a call into DuckDB costs in system calls, with 1, 8 and 32 workers: the same. The calls of
// this thread that the pool makes through libc are counted by functions of this program in their
// place.
#include "pool.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <new>
#include <string>

#include "runtime/parts.hpp"

namespace {

thread_local constinit int calls_of_this_thread = 0;
// ThreadSanitizer has an operator new of its own.
#if !defined(__SANITIZE_THREAD__)
thread_local constinit long refuse_allocation = -1;  // the one to refuse; -1: none
#endif

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* now) noexcept {
  static const auto real = next<int (*)(clockid_t, timespec*)>("clock_gettime");
  if (clock != CLOCK_MONOTONIC && clock != CLOCK_REALTIME) ++calls_of_this_thread;
  return real(clock, now);
}
extern "C" int sched_setaffinity(pid_t thread, std::size_t bytes, const cpu_set_t* mask) noexcept {
  static const auto real = next<int (*)(pid_t, std::size_t, const cpu_set_t*)>("sched_setaffinity");
  ++calls_of_this_thread;
  return real(thread, bytes, mask);
}
extern "C" int sched_getaffinity(pid_t thread, std::size_t bytes, cpu_set_t* mask) noexcept {
  static const auto real = next<int (*)(pid_t, std::size_t, cpu_set_t*)>("sched_getaffinity");
  ++calls_of_this_thread;
  return real(thread, bytes, mask);
}
extern "C" ssize_t read(int file, void* bytes, std::size_t count) {
  static const auto real = next<ssize_t (*)(int, void*, std::size_t)>("read");
  ++calls_of_this_thread;
  return real(file, bytes, count);
}

#if !defined(__SANITIZE_THREAD__)
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  if (refuse_allocation >= 0 && refuse_allocation-- == 0) throw std::bad_alloc();
  void* const memory = std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
// For std::stable_sort, whose memory AddressSanitizer would see come and go by different ways.
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return std::malloc(bytes);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
#endif

namespace {

using atl::duckdb::DatabaseHandle;
using atl::duckdb::Policy;
using atl::duckdb::Pool;

std::unique_ptr<Pool> pool_of(int workers) {
  auto database = std::make_unique<DatabaseHandle>(1);
  database->expect(ATOLL_FAKE_DUCKDB);
  EXPECT_TRUE(database->arrived());
  atl::duckdb::PoolOptions options;
  options.workers = workers;
  options.policy = Policy::local;  // the workers stay
  options.places = atl::synthetic_places("chiplet:4 core:8", atl::test::real_cpus());
  return std::make_unique<Pool>(std::move(database), options);
}

void query(Pool& pool, Pool::Owner owner) {
  {
    const Pool::Call call(pool, Pool::Call::Kind::query, owner, "select 1");
  }
  const Pool::Call fetch(pool, Pool::Call::Kind::fetch, owner);
}

TEST(DuckDBPool, ACallMakesAsManySystemCallsWithManyWorkers) {
  std::map<int, int> calls;
  for (const int workers : {1, 8, 32}) {
    const std::unique_ptr<Pool> pool = pool_of(workers);
    query(*pool, 1);
    constexpr int kQueries = 100;
    const int before = calls_of_this_thread;
    for (int times = 0; times < kQueries; ++times) query(*pool, 1);
    calls[workers] = (calls_of_this_thread - before) / kQueries;
    EXPECT_EQ(pool->queries().size(), 1U + kQueries);
  }
  EXPECT_LE(calls[1], 16);
  EXPECT_EQ(calls[8], calls[1]);
  EXPECT_EQ(calls[32], calls[1]);
}

#if !defined(__SANITIZE_THREAD__)
// A call that found no memory is over: it keeps no query running, and does not end the process.
TEST(DuckDBPool, ACallWithoutMemoryIsOver) {
  const std::unique_ptr<Pool> pool = pool_of(2);
  bool refused = true;
  for (long allowed = 0; refused; ++allowed) {
    refuse_allocation = allowed;
    try {
      query(*pool, 1);
    } catch (const std::bad_alloc&) {
    }
    refused = refuse_allocation < 0;
    refuse_allocation = -1;
    ASSERT_NO_THROW(pool->set_spread(1)) << "after allocation " << allowed;
  }
}
#endif

}  // namespace
