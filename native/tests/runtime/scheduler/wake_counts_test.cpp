// What it costs to wake n workers and threads, to sleep, and to steal, for n from 1 to 64: system
// calls, locked instructions, and how many wake each other in turn (counting.hpp).
#include <array>
#include <bit>
#include <optional>

#include "counting.hpp"
#include "scheduler/worker.hpp"

#if defined(ATL_TEST_COUNTS)

namespace {

using atl::test::Calls;
using atl::test::calls_of_all;
using atl::test::calls_of_this_thread;
using atl::test::locked_instructions_of;
using atl::test::LockedCount;
using atl::test::Steps;
using atl::test::WakeWatch;

void until(auto&& condition) {
  while (!condition()) std::this_thread::yield();
}

class WakeCounts : public atl::test::WithWorkers {
 protected:
  static int workers() { return GetParam(); }

  // A tree of n is so deep that its last is up after log n steps; a worker that is up may end its
  // search and wake another, or the one that began all this.
  //
  // `attempt` wakes all and gives the steps. It may take more of them by chance: where CPUs are
  // few, workers that end their searches wake each other in a row before the tree's get a CPU. That
  // is sooner than the tree would, so one attempt with few steps shows the tree.
  template <class Attempt>
  static void expect_few_steps(Attempt&& attempt) {
    const int most = std::bit_width(static_cast<unsigned>(workers())) + 3;
    int steps = attempt();
    for (int again = 0; again < 5 && steps > most; ++again) steps = attempt();
    EXPECT_LE(steps, most);
  }

  // The call, on this thread, that wakes others; then waits until they are up. The steps.
  template <class Call, class Up>
  static int expect_one_wake(Call&& call, Up&& up) {
    const WakeWatch watch;
    call();
    EXPECT_LE(watch.by_this_thread(), 1);
    until(up);
    return watch.longest_chain();
  }

  // Where tasks wait: one bound to each worker, or all of them at this place.
  using Where = std::optional<atl::Place>;
  static std::array<Where, 3> everywhere(const atl::Group& group) {
    return {Where(), atl::Place{}, group.place()};
  }

  // Tasks that wait, as many as there are workers from `first` on. All workers are asleep then.
  // Each task that is up keeps its worker until all are, so that no worker runs two of them.
  struct Waiting {
    std::atomic<int> begun{0};
    std::atomic<int> up{0};
    std::vector<atl::Task<>> tasks;

    template <class Wait>
    void spawn(atl::Runtime& runtime, int first, const Where& where, const Wait& wait) {
      for (int rank = first; rank < runtime.workers(); ++rank) {
        tasks.push_back(runtime.spawn(where.value_or(atl::on_worker(rank)), [&, wait] {
          ++begun;
          wait();
          ++up;
          until([&] { return all_up(); });
        }));
      }
      await_asleep(runtime, runtime.workers());
      EXPECT_EQ(begun, static_cast<int>(tasks.size()));
    }
    // Coroutines, which are not on a stack while they wait.
    void spawn_coroutines(atl::Runtime& runtime, int first, const Where& where, atl::Event& event) {
      const auto waits = [](Waiting& self, atl::Event& of) -> atl::Coro<> {
        ++self.begun;
        co_await of;
        ++self.up;
        until([&] { return self.all_up(); });
      };
      for (int rank = first; rank < runtime.workers(); ++rank) {
        tasks.push_back(runtime.spawn(where.value_or(atl::on_worker(rank)), waits(*this, event)));
      }
      until([&] { return begun == static_cast<int>(tasks.size()); });
      await_asleep(runtime, runtime.workers());
    }
    bool all_up() const { return up == static_cast<int>(tasks.size()); }
    void join() {
      for (auto& task : tasks) task.join();
    }
  };
};

TEST_P(WakeCounts, AllDoWakesOneWorkerItself) {
  atl::Runtime runtime(options());
  const auto all_do = [&] {
    await_asleep(runtime, workers() - 1);
    const WakeWatch watch;
    long before_own_share = 0;
    atl::all_do([&](int rank) {
      if (rank == 0) before_own_share = watch.by_this_thread();
    });
    EXPECT_LE(before_own_share, 1);
    return watch.longest_chain();
  };
  runtime.spawn(atl::on_worker(0), [&] { expect_few_steps(all_do); }).join();
}

TEST_P(WakeCounts, AnEventWakesOneOfItsWaitersWorkersItself) {
  atl::Runtime runtime(options());
  const atl::Group group(runtime, {.threads = workers()});
  for (const Where& where : everywhere(group)) {
    expect_few_steps([&] {
      atl::Event event;
      Waiting waiting;
      waiting.spawn(runtime, 0, where, [&] { event.wait(); });
      const int steps = expect_one_wake([&] { event.set(); }, [&] { return waiting.all_up(); });
      waiting.join();
      return steps;
    });
  }
}

TEST_P(WakeCounts, AnEventThatATaskBesideThemSetsToo) {
  atl::Runtime runtime(options());
  const atl::Group group(runtime, {.threads = workers()});
  for (const Where& where : everywhere(group)) {
    expect_few_steps([&] {
      atl::Event event;
      Waiting waiting;
      waiting.spawn(runtime, 1, where, [&] { event.wait(); });
      const auto set = [&] {
        await_asleep(runtime, workers() - 1);
        return expect_one_wake([&] { event.set(); }, [&] { return waiting.all_up(); });
      };
      const int steps = runtime.spawn(where.value_or(atl::on_worker(0)), set).join();
      waiting.join();
      return steps;
    });
  }
}

TEST_P(WakeCounts, AnEventThatCoroutinesAwaitToo) {
  atl::Runtime runtime(options());
  const atl::Group group(runtime, {.threads = workers()});
  for (const Where& where : everywhere(group)) {
    for (const bool task_sets : {false, true}) {
      expect_few_steps([&] {
        atl::Event event;
        Waiting waiting;
        waiting.spawn_coroutines(runtime, task_sets ? 1 : 0, where, event);
        const auto set = [&] {
          await_asleep(runtime, workers() - (task_sets ? 1 : 0));
          return expect_one_wake([&] { event.set(); }, [&] { return waiting.all_up(); });
        };
        const int steps =
            task_sets ? runtime.spawn(where.value_or(atl::on_worker(0)), set).join() : set();
        waiting.join();
        return steps;
      });
    }
  }
}

// Its deque has words of one domain only.
TEST_P(WakeCounts, AWorkerThatTakesUpAnotherDomainWakesOneForWhatItLeaves) {
  struct Piece : atl::detail::Job {
    std::atomic<int>* up;
  };
  atl::Runtime runtime(options());
  const atl::Group group(runtime, {.threads = workers()});
  for (const atl::Place place : {atl::Place(), group.place()}) {
    std::atomic<int> up{0};
    std::vector<Piece> pieces(static_cast<std::size_t>(workers() - 1));
    const auto leaves = [&] {
      await_asleep(runtime, workers() - 1);
      atl::runtime::Worker& worker = *atl::runtime::Worker::here();
      const atl::detail::Word tag = worker.tag;
      for (Piece& piece : pieces) {
        piece.execute = [](atl::detail::Job* job) {
          auto& count = *static_cast<Piece*>(job)->up;
          ++count;
          until([&] { return count == workers() - 1; });
        };
        piece.context = nullptr;
        piece.up = &up;
        worker.deque.push(atl::detail::word_of(&piece, atl::detail::WordKind::job, tag));
      }
      const atl::detail::Word other = tag_for(&worker, atl::on_worker(worker.rank));
      const int steps =
          expect_one_wake([&] { worker.enter_domain(other); }, [&] { return up == workers() - 1; });
      worker.enter_domain(tag);
      return steps;
    };
    expect_few_steps([&] {
      up = 0;
      const int steps = runtime.spawn(place, leaves).join();
      await_asleep(runtime, workers());  // they have left the pieces
      return steps;
    });
  }
}

TEST_P(WakeCounts, AConditionVariableToo) {
  atl::Runtime runtime(options());
  expect_few_steps([&] {
    atl::Mutex mutex;
    atl::ConditionVariable changed;
    Waiting waiting;
    waiting.spawn(runtime, 0, {}, [&] {
      std::unique_lock lock(mutex);
      changed.wait(lock);
    });
    const int steps =
        expect_one_wake([&] { changed.notify_all(); }, [&] { return waiting.all_up(); });
    waiting.join();
    return steps;
  });
}

TEST_P(WakeCounts, TheLastPartyOfABarrierWakesOneWorkerItself) {
  atl::Runtime runtime(options());
  expect_few_steps([&] {
    atl::Barrier barrier(workers());
    Waiting waiting;
    waiting.spawn(runtime, 1, {}, [&] { barrier.arrive_and_wait(); });
    const auto last = [&] {
      return expect_one_wake([&] { barrier.arrive_and_wait(); }, [&] { return waiting.all_up(); });
    };
    const int steps = runtime.spawn(atl::on_worker(0), last).join();
    waiting.join();
    return steps;
  });
}

// Threads that are no workers.
TEST_P(WakeCounts, TheLastThreadOfABarrierWakesOneThreadItself) {
  expect_few_steps([] {
    atl::Barrier barrier(workers() + 1);
    std::atomic<int> up{0};
    std::vector<std::jthread> threads;
    const long calls = calls_of_all().futex;
    for (int thread = 0; thread < workers(); ++thread) {
      threads.emplace_back([&] {
        barrier.arrive_and_wait();
        ++up;
      });
    }
    until([&] { return calls_of_all().futex - calls >= workers(); });  // each goes to sleep
    return expect_one_wake([&] { barrier.arrive_and_wait(); }, [&] { return up == workers(); });
  });
}

// All parties in turn on one worker, so that each is suspended but the last one.
TEST_P(WakeCounts, LockedInstructionsOfABarrierAreAFewForEachParty) {
  atl::RuntimeOptions one = options();
  one.workers = 1;
  atl::Runtime runtime(one);
  runtime
      .spawn(atl::on_worker(0),
             [] {
               const double locked = locked_instructions_of(
                   [] {
                     atl::Barrier barrier(GetParam());
                     atl::Scope scope;
                     for (int party = 0; party < GetParam(); ++party) {
                       scope.fork([&] { barrier.arrive_and_wait(); });
                     }
                     scope.join();
                   },
                   3);
               EXPECT_LE(locked / GetParam(), 12);
             })
      .join();
}

TEST_P(WakeCounts, ASpawnFromOutsideWakesOneWorker) {
  atl::Runtime runtime(options());
  runtime.spawn([] {}).join();  // this thread's first
  for (int times = 0; times < 5; ++times) {
    await_asleep(runtime, workers());
    const Calls before = calls_of_this_thread();
    runtime.spawn([] {}).detach();
    const Calls calls = calls_of_this_thread() - before;
    EXPECT_LE(calls.futex, 1);
    EXPECT_EQ(calls.membarrier, 0);
  }
  await_asleep(runtime, workers());
  EXPECT_LE(locked_instructions_of([&] { runtime.spawn([] {}).detach(); }, 10), 16);
}

// And that one, which was the only one to search, wakes nobody in its place.
TEST_P(WakeCounts, ATaskFromOutsideRunsAndEndsWithOneWorkerAwake) {
  atl::Runtime runtime(options());
  runtime.spawn([] {}).join();
  const atl::runtime::Parking& parking = runtime.team().parking;
  for (int times = 0; times < 20; ++times) {
    await_asleep(runtime, workers());
    const std::uint64_t wakes = parking.futex_wakes();
    const long membarriers = calls_of_all().membarrier;
    runtime.spawn([] {}).join();
    await_asleep(runtime, workers());
    EXPECT_EQ(parking.futex_wakes() - wakes, 1U);
    EXPECT_EQ(calls_of_all().membarrier - membarriers, 1) << "when it falls asleep";
  }
}

// Worker 1 has nothing to do while all others are busy: it searches, and then sleeps until its task
// goes on. It calls the kernel to fence and to sleep, once each, and not to search.
TEST_P(WakeCounts, ASearchThatFindsNothingCallsNoKernel) {
  if (workers() == 1) return;
  atl::Runtime runtime(options());
  std::atomic<int> busy{0};
  std::atomic<bool> over{false};
  std::vector<atl::Task<>> tasks;
  for (int rank = 0; rank < workers(); ++rank) {
    if (rank == 1) continue;
    tasks.push_back(runtime.spawn(atl::on_worker(rank), [&] {
      ++busy;
      until([&] { return over.load(); });
    }));
  }
  until([&] { return busy == workers() - 1; });
  atl::Event event;
  auto waits = runtime.spawn(atl::on_worker(1), [&] {
    const Calls before = calls_of_this_thread();
    event.wait();
    return calls_of_this_thread() - before;
  });
  await_asleep(runtime, 1);
  event.set();
  const Calls calls = waits.join();
  EXPECT_LE(calls.futex, 2) << "once more if it is woken before it sleeps";
  EXPECT_LE(calls.membarrier, 1);
  over = true;
  for (auto& task : tasks) task.join();
}

// Every worker is in a task. One of them offers a child; another one waits, so that its worker
// searches, steals the child and runs it, and that ends the wait.
TEST_P(WakeCounts, AStealCallsNoKernelAndTakesAFewLockedInstructions) {
  if (workers() == 1) return;
  constexpr int kSteals = 5;
  atl::Runtime runtime(options());
  std::atomic<int> inside{0};
  std::atomic<bool> over{false};
  std::atomic<int> offered{0};
  std::atomic<int> stolen{0};
  std::atomic<atl::Event*> event{nullptr};
  const auto gives = [&] {
    for (int steal = 1; steal <= kSteals; ++steal) {
      until([&] { return event != nullptr; });
      atl::Event* const ends = event.exchange(nullptr);
      auto child = atl::spawn([ends] { ends->set(); });
      atl::runtime::Worker::here()->deque.expose();
      offered = steal;
      until([&] { return stolen == steal; });
      child.join();
    }
    over = true;
  };
  const auto steals = [&] {
    for (int steal = 1; steal <= kSteals; ++steal) {
      atl::Event ends;
      event = &ends;
      until([&] { return offered == steal; });
      const Calls before = calls_of_this_thread();
      LockedCount count;
      ends.wait();
      const long locked = count.end();
      const Calls calls = calls_of_this_thread() - before;
      EXPECT_LE(locked, 20);
      EXPECT_EQ(calls.futex, 0);
      EXPECT_EQ(calls.membarrier, 0);
      stolen = steal;
    }
  };
  std::vector<atl::Task<>> tasks;
  for (int task = 0; task < workers(); ++task) {
    tasks.push_back(runtime.spawn([&] {
      const int role = inside++;
      until([&] { return inside == workers(); });
      if (role == 0) {
        gives();
      } else if (role == 1) {
        steals();
      } else {
        until([&] { return over.load(); });
      }
    }));
  }
  for (auto& task : tasks) task.join();
}

// A thread wakes others as soon as it may run, which may be before it was woken itself: so at each
// instruction those that it wakes may run if it may.
TEST(WakeTree, LetsThoseThatANodeWakesRunBeforeTheNode) {
  static std::array<atl::runtime::WakeNode, 20> nodes;
  static int early;
  early = 0;
  atl::runtime::WakeTree tree;
  for (auto& node : nodes) tree.add(node);
  Steps steps([](const std::uint8_t*) {
    for (const auto& node : nodes) {
      for (const auto* other : node.wakes) {
        if (other != nullptr && node.word > other->word) ++early;
      }
    }
  });
  tree.let_run(1);
  steps.end();
  EXPECT_EQ(early, 0);
  EXPECT_EQ(nodes.back().word, 1U);
}

INSTANTIATE_TEST_SUITE_P(Workers, WakeCounts, testing::Values(1, 2, 4, 8, 16, 32, 64),
                         atl::test::workers_name);

}  // namespace

#endif
