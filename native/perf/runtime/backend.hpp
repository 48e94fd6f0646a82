// The interface that a kernel expects of a runtime, so that one source runs on all of them. An
// adaptor (backend_NAME.hpp) defines `atl::perf::Backend`. A kernel is compiled for a runtime only
// if its adaptor has what the kernel needs (`requires` in main.cpp). Each primitive uses the
// fastest of the ways that the runtime's own manual shows.
//
//   explicit Backend(Setup)             worker threads, with or without the caller of `run`
//   run(f)                              runs f inside the runtime; returns when f returns
//   all(f, ..., g)              static  forks all but the last, calls the last, waits for all
//   Children{}; .fork(f); .join()       any number of children of the calling task
//   spawn(f); .join()           static  a task that may suspend
//   yield()                     static  lets others run
//   make_group()                        makes a group and ends it
//   run_in_group(f)                     runs f inside a group of its own
//   Event{}; .wait(); .set()            can be set once
//   loops(times, n, make_body)          `times` loops in one run: body(i) for each i below n
//   sort(items)                         sorts a vector
//   team(f)                             runs f(rank) on all threads at once
//   Barrier{n}; .arrive_and_wait()      for a team
//   in_section(f)               static  runs f in a code section of the profiler
//   sections_entered()                  by all threads so far
//   fib(n), skynet(first, leaves)       instead of run and all: a runtime whose tasks are not C++
//                                       functions brings these two kernels itself
//
// Other constants: kName with the version, kWeight.
#pragma once

namespace atl::perf {

// The cost of a task in a runtime, which limits how many can live at once. No runtime has a
// cut-off: each level forks; heavier runtimes get a smaller problem.
enum class Weight { kTask, kFiber, kThread };

struct Setup {
  int threads = 1;
  bool million_tasks = false;  // choose the stacks for a million live tasks
  bool trace = false;          // let the profiler keep a trace
  bool operator==(const Setup&) const = default;
};

// The size of a problem for a runtime of this weight.
template <class T>
constexpr T sized(Weight weight, T for_tasks, T for_fibers, T for_threads) {
  switch (weight) {
    case Weight::kTask: return for_tasks;
    case Weight::kFiber: return for_fibers;
    case Weight::kThread: return for_threads;
  }
  return for_tasks;
}

}  // namespace atl::perf
