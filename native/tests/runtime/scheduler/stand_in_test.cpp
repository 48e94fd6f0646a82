// `run` on the caller's own thread, in the place of a worker that sleeps.
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "atoll/runtime.hpp"
#include "runtime/parts.hpp"
#include "scheduler/affinity.hpp"
#include "scheduler/worker.hpp"

namespace {

using atl::runtime::Worker;

std::thread::id thread_now() { return std::this_thread::get_id(); }

void await_all_asleep(atl::Runtime& runtime) {
  while (runtime.team().parking.committed() < runtime.workers()) std::this_thread::yield();
}

std::uint64_t stand_ins(atl::Runtime& runtime) {
  std::uint64_t sum = 0;
  for (int rank = 0; rank < runtime.workers(); ++rank) {
    sum += runtime.team().worker(rank).stand_ins();
  }
  return sum;
}

// `run` while the caller can stand in.
template <class F>
auto run_here(atl::Runtime& runtime, F&& function) {
  await_all_asleep(runtime);
  const std::uint64_t before = stand_ins(runtime);
  auto found = runtime.run(function);
  EXPECT_EQ(stand_ins(runtime), before + 1);
  return found;
}

TEST(StandIn, TheCallerRunsTheFunctionItselfWhileTheWorkersSleepOn) {
  atl::Runtime runtime(atl::test::with_workers(4));
  EXPECT_EQ(run_here(runtime, thread_now), thread_now());
  EXPECT_EQ(runtime.team().parking.sleepers(), 4);
  EXPECT_FALSE(atl::this_task::inside());
  EXPECT_THROW(atl::this_task::worker(), atl::RuntimeFault);
}

// Runs `body(rank)` bound to the CPUs of each worker of a team whose workers have CPUs of their
// own.
void on_the_cpu_of_each(auto&& body) {
  const std::vector<int> cpus = atl::test::real_cpus();
  atl::RuntimeOptions options = atl::test::with_workers(cpus.size() < 2 ? 1 : 2);
  options.places = atl::synthetic_places("core:" + std::to_string(options.workers), cpus);
  atl::Runtime runtime(options);
  for (int rank = 0; rank < options.workers; ++rank) {
    const int core = runtime.cores()[static_cast<std::size_t>(rank)];
    std::jthread([&] {
      atl::runtime::bind_thread(atl::runtime::this_thread(),
                                runtime.places().cores[static_cast<std::size_t>(core)].cpus);
      body(runtime, rank);
    });
  }
}

TEST(StandIn, TakesThePlaceOfTheWorkerThatIsBoundToItsCpu) {
  on_the_cpu_of_each([](atl::Runtime& runtime, int rank) {
    EXPECT_EQ(run_here(runtime, [] { return atl::this_task::worker(); }), rank);
  });
}

// It would share the CPU with that worker.
TEST(StandIn, WakesAnotherWorkerWhileTheOneOfItsCpuIsAwake) {
  on_the_cpu_of_each([](atl::Runtime& runtime, int rank) {
    await_all_asleep(runtime);
    std::atomic<bool> begun{false};
    std::atomic<bool> over{false};
    std::atomic<std::uint64_t>& from_outside = runtime.team().spawned_outside;
    const std::uint64_t with_busy = from_outside + 1;
    auto busy = runtime.spawn(atl::on_worker(rank), [&] {
      begun = true;
      while (!over && from_outside == with_busy) std::this_thread::yield();
    });
    while (!begun || runtime.team().parking.committed() < runtime.workers() - 1) {
      std::this_thread::yield();
    }
    EXPECT_NE(runtime.run(thread_now), thread_now());
    over = true;
    busy.join();
  });
}

TEST(StandIn, LeavesTheCallersAffinityAndSignalMaskAlone) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  atl::Runtime runtime(atl::test::with_workers(2));
  const bool same = run_here(runtime, [&] {
    cpu_set_t inside;
    sched_getaffinity(0, sizeof inside, &inside);
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    return CPU_EQUAL(&before, &inside) != 0 && sigismember(&blocked, SIGUSR1) == 0;
  });
  EXPECT_TRUE(same);
}

TEST(StandIn, ReturnsValuesAndThrowsExceptions) {
  atl::Runtime runtime(atl::test::with_workers(2));
  EXPECT_EQ(run_here(runtime, [] { return std::string("value"); }), "value");
  await_all_asleep(runtime);
  EXPECT_THROW(runtime.run([] { throw std::runtime_error("inside"); }), std::runtime_error);
  try {
    throw 1;
  } catch (int) {
    // The caller's exception is its own, and still there afterwards.
    EXPECT_TRUE(run_here(runtime, [] { return std::current_exception() == nullptr; }));
    EXPECT_NE(std::current_exception(), nullptr);
  }
}

TEST(StandIn, HelpsWithATreeAndAllWorkersTakePart) {
  atl::Runtime runtime(atl::test::with_workers(8));
  EXPECT_EQ(run_here(runtime, [] { return atl::test::fib(22); }), 17711);
  // As many pieces as workers run at the same time.
  const int together = run_here(runtime, [] {
    std::atomic<int> inside{0};
    atl::Scope scope;
    for (int piece = 0; piece < 8; ++piece) {
      scope.fork([&] {
        ++inside;
        while (inside < 8) std::this_thread::yield();
      });
    }
    scope.join();
    return inside.load();
  });
  EXPECT_EQ(together, 8);
}

TEST(StandIn, AFunctionThatWaitsMayEndOnAWorker) {
  atl::Runtime runtime(atl::test::with_workers(2));
  std::atomic<bool> begun{false};
  atl::Event event;
  std::jthread other([&] {
    while (!begun) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    event.set();
  });
  const auto [before, after] = run_here(runtime, [&] {
    const pid_t here = gettid();  // not get_id, which a compiler may keep over a change of threads
    begun = true;
    event.wait();
    return std::pair(here, gettid());
  });
  EXPECT_EQ(before, gettid());
  EXPECT_NE(after, gettid()) << "the caller had given the worker's place back";
}

// What was left in the worker's queues is its own thread's to do.
TEST(StandIn, DoesNotStayForTasksThatItLeftBehind) {
  atl::Runtime runtime(atl::test::with_workers(1));
  std::atomic<bool> go{false};
  std::atomic<bool> done{false};
  std::thread::id by;
  run_here(runtime, [&] {
    atl::spawn([&] {
      while (!go) std::this_thread::yield();
      by = thread_now();
      done = true;
    }).detach();
    return true;
  });
  go = true;  // only now: so `run` was not waiting for it
  EXPECT_TRUE(atl::test::soon([&] { return done.load(); }));
  EXPECT_NE(by, thread_now());
}

// Runs `body(over)` on a thread. Its tasks end when it sets `over`, or when this does, late.
bool returns_by_itself(auto&& body) {
  std::atomic<bool> over{false};
  std::atomic<bool> returned{false};
  const std::jthread caller([&] {
    body(over);
    returned = true;
  });
  const bool by_itself = atl::test::soon([&] { return returned.load(); });
  over = true;
  return by_itself;
}

// Tasks that yield to each other keep the loop busy, and the work with a place is for the worker's
// own thread.
void yield_until_placed_work_ends(atl::Place place) {
  EXPECT_TRUE(returns_by_itself([&](std::atomic<bool>& over) {
    atl::Runtime runtime(atl::test::with_workers(1));
    run_here(runtime, [&] {
      auto yields = atl::spawn([&] {
        while (!over) atl::yield();
      });
      auto placed = atl::spawn(place, [&] { over = true; });
      while (!over) atl::yield();
      yields.join();
      placed.join();
      return true;
    });
  }));
}

TEST(StandIn, LeavesTasksThatYieldForWorkWithAPlace) {
  for (const atl::Place place : {atl::on_worker(0), atl::on_chiplet(0), atl::on_node(0)}) {
    yield_until_placed_work_ends(place);
    yield_until_placed_work_ends(atl::urgently(place));
  }
}

TEST(StandIn, LeavesTasksThatYieldForAGroupsTasks) {
  EXPECT_TRUE(returns_by_itself([&](std::atomic<bool>& over) {
    atl::Runtime runtime(atl::test::with_workers(1));
    atl::Group group(runtime, {.threads = 1});
    std::atomic<bool> inside{false};
    const std::jthread user([&] {
      while (!inside) std::this_thread::yield();
      group.run([&] { over = true; });
    });
    run_here(runtime, [&] {
      auto yields = atl::spawn([&] {
        while (!over) atl::yield();
      });
      inside = true;
      while (!over) atl::yield();
      yields.join();
      return true;
    });
  }));
}

// Half of the times the function ends on the other worker, while the caller's tasks yield.
TEST(StandIn, LeavesTasksThatYieldWhenTheFunctionHasEndedElsewhere) {
  for (int times = 0; times < 20; ++times) {
    std::atomic<bool> stop{false};
    ASSERT_TRUE(returns_by_itself([&](std::atomic<bool>& over) {
      atl::Runtime runtime(atl::test::with_workers(2));
      run_here(runtime, [&] {
        for (int task = 0; task < 8; ++task) {
          atl::spawn([&] {
            while (!stop && !over) atl::yield();
          }).detach();
        }
        atl::sleep_for(std::chrono::milliseconds(2));
        return true;
      });
      stop = true;
    }));
  }
}

// Work with a place is for threads that sit there.
TEST(StandIn, LeavesWorkWithAPlaceToTheWorkersOwnThreads) {
  atl::Runtime runtime(atl::test::with_workers(4));
  const auto outside = thread_now();
  const bool apart = run_here(runtime, [&] {
    std::atomic<int> here{0};
    const auto note = [&] { here += thread_now() == outside ? 1 : 0; };
    atl::all_do([&](int) { note(); });
    for (int rank = 0; rank < 4; ++rank) atl::call(atl::on_worker(rank), note);
    for (int chiplet = 0; chiplet < 4; ++chiplet) atl::call(atl::on_chiplet(chiplet), note);
    return here == 0;
  });
  EXPECT_TRUE(apart);
  atl::Group group(runtime, {.threads = 2});
  await_all_asleep(runtime);
  EXPECT_NE(group.run(thread_now), outside);
}

// Also a resumed task that is to go next on a worker, which is in a long one.
TEST(StandIn, LeavesAResumedTaskWithAPlaceToTheWorkersOwnThread) {
  atl::RuntimeOptions options = atl::test::with_workers(2);
  options.pin = false;  // else the caller may be on the CPU of the one that is awake
  atl::Runtime runtime(options);
  atl::Event resumes;
  atl::Event ends;
  std::atomic<bool> waits{false};
  std::atomic<bool> go{false};
  std::atomic<bool> ready{false};
  std::atomic<pid_t> by{0};
  auto busy = runtime.spawn(atl::on_node(0), [&] {
    auto placed = atl::spawn([&] {
      waits = true;
      resumes.wait();
      by = gettid();
      ends.set();
    });
    while (!waits) atl::yield();
    while (!go) std::this_thread::yield();
    resumes.set();
    ready = true;
    while (by == 0) std::this_thread::yield();
    placed.join();
  });
  while (!waits || runtime.team().parking.committed() < 1) std::this_thread::yield();
  runtime.run([&] {
    go = true;
    while (!ready) std::this_thread::yield();
    ends.wait();
  });
  EXPECT_NE(by, gettid());
  busy.join();
}

TEST(StandIn, ACallFromATaskOfAnotherRuntimeDoesNotHoldItsWorker) {
  atl::Runtime outer(atl::test::with_workers(1));
  atl::Runtime inner(atl::test::with_workers(2));
  await_all_asleep(inner);
  atl::Event event;
  auto waits = outer.spawn([&] { inner.run([&] { event.wait(); }); });
  outer.spawn([&] { event.set(); }).join();  // the only worker is free for it
  waits.join();
}

TEST(StandIn, ACallInsideATaskIsACallAndTheOutermostStandsIn) {
  atl::Runtime runtime(atl::test::with_workers(1));
  EXPECT_EQ(run_here(runtime, [&] { return runtime.run([&] { return runtime.run(thread_now); }); }),
            thread_now());
}

TEST(StandIn, WithoutAWorkerThatSleepsTheCallerWaits) {
  atl::Runtime runtime(atl::test::with_workers(1));
  std::atomic<bool> inside{false};
  std::atomic<bool> over{false};
  auto busy = runtime.spawn([&] {
    inside = true;
    while (!over) std::this_thread::yield();
  });
  while (!inside) std::this_thread::yield();
  std::jthread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    over = true;
  });
  EXPECT_NE(runtime.run(thread_now), thread_now());
  busy.join();
}

// The function tells another thread that the runtime may go, while its caller is still inside.
TEST(StandIn, TheRuntimeMayEndAsSoonAsTheFunctionHas) {
  for (int times = 0; times < 200; ++times) {
    auto runtime = std::make_unique<atl::Runtime>(atl::test::with_workers(2));
    std::atomic<bool> may_end{false};
    std::jthread ends([&] {
      while (!may_end) std::this_thread::yield();
      runtime.reset();
    });
    runtime->run([&] { may_end = true; });
  }
}

TEST(StandIn, BooksWhatItRanToTheWorkerAndSaysThatItsThreadDidNot) {
  atl::RuntimeOptions options = atl::test::with_workers(1);
  options.trace_events = 1000;
  atl::Runtime runtime(options);
  run_here(runtime, [] {
    const atl::Section section("standing in");
    return atl::spawn([] { return 1; }).join();
  });
  const atl::Profile profile = runtime.profile();
  ASSERT_EQ(profile.workers.at(0).sections.size(), 1U);
  EXPECT_EQ(profile.workers[0].sections[0].name, "standing in");
  EXPECT_GE(profile.workers[0].counts.tasks, 1U);
  const bool said =
      std::any_of(profile.remarks.begin(), profile.remarks.end(), [](const std::string& remark) {
        return remark.find("ran on their callers' threads") != std::string::npos;
      });
  EXPECT_TRUE(said);
}

// Its fills and its share of the L3 are not the workers'.
TEST(StandIn, ControllersDoNotSeeWhatItRan) {
  atl::RuntimeOptions options = atl::test::with_workers(2);
  options.approach = "adaptive";
  options.interval = std::chrono::minutes(1);
  atl::Runtime runtime(options);
  ASSERT_TRUE(runtime.team().metered());
  const auto measured = [&] {
    std::vector<atl::runtime::Meter::Sum> sums;
    for (int rank = 0; rank < 2; ++rank) {
      const Worker& worker = runtime.team().worker(rank);
      worker.meter().read(0, [] { return std::uint64_t{0}; }, sums);
    }
    return !sums.empty();
  };
  run_here(runtime, thread_now);
  EXPECT_FALSE(measured());
  runtime.spawn(thread_now).join();
  EXPECT_TRUE(atl::test::soon(measured));
}

// A thread's destructors end its alternate stack, without which it must not run tasks.
TEST(StandIn, NotInADestructorAfterTheAlternateStackHasGone) {
  atl::Runtime runtime(atl::test::with_workers(1));
  struct Last {
    atl::Runtime* runtime = nullptr;
    std::thread::id* by = nullptr;
    stack_t of_sanitizer{};
    ~Last() {
      await_all_asleep(*runtime);
      *by = runtime->run(thread_now);
      sigaltstack(&of_sanitizer, nullptr);
    }
  };
  std::thread::id by;
  std::thread::id caller;
  std::thread([&] {
    thread_local Last last;  // made first, so destroyed last
    last.runtime = &runtime;
    last.by = &by;
    // AddressSanitizer gives each thread an alternate stack for its whole life.
    const stack_t none{.ss_sp = nullptr, .ss_flags = SS_DISABLE, .ss_size = 0};
    sigaltstack(&none, &last.of_sanitizer);
    caller = run_here(runtime, thread_now);
  }).join();
  EXPECT_NE(by, caller);
}

TEST(StandIn, ManyCallersAtOnceAndTheirTasks) {
  atl::Runtime runtime(atl::test::with_workers(3));
  std::atomic<long> sum{0};
  std::vector<std::jthread> callers;
  for (int caller = 0; caller < 6; ++caller) {
    callers.emplace_back([&, caller] {
      for (int times = 0; times < 300; ++times) {
        sum += runtime.run([&] {
          switch ((times + caller) % 5) {
            case 0: return atl::test::fib(8);
            case 1: atl::yield(); return 21L;
            case 2: atl::spawn([&] { sum += 0; }).detach(); return 21L;
            case 3: return atl::call(atl::on_worker(times % 3), [] { return 21L; });
            default: atl::sleep_for(std::chrono::microseconds(50)); return 21L;
          }
        });
      }
    });
  }
  callers.clear();
  EXPECT_EQ(sum, 6 * 300 * 21);
}

// Death tests fork; as one of them, that the child of a caller is no task.
TEST(StandIn, AChildOfForkMadeByTheCallerIsOutsideOfTasks) {
  atl::Runtime runtime(atl::test::with_workers(2));
  const int status = run_here(runtime, [] {
    const atl::Section section("parent's");
    return atl::test::in_a_child([] {
      const atl::Section own("child's");
      return atl::this_task::inside() || atl::runtime::Recorder::current() != nullptr ? 1 : 0;
    });
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(run_here(runtime, [] { return 3; }), 3) << "the parent goes on";
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
[[gnu::noinline]] int deeper(int depth) {
  volatile char frame[4096];
  frame[0] = static_cast<char>(depth);
  return depth > 1'000'000 ? frame[0] : deeper(depth + 1) + frame[0];
}

TEST(StandInDeathTest, AnOverflowOfTheTasksStackIsReportedOnTheCallersThread) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(
      {
        atl::Runtime runtime(atl::test::with_workers(1));
        run_here(runtime, [] { return deeper(0); });
      },
      "task stack overflow");
}
#endif

}  // namespace
