// What a kernel may ask of a runtime, so that one source runs on all of them. An adaptor
// (backend_NAME.hpp) defines `atl::perf::Backend`; a kernel is compiled for a runtime only if its
// adaptor has what the kernel needs (`requires` in main.cpp). Each primitive is written the way
// that is the fastest of those which the runtime's own manual shows.
//
//   explicit Backend(Setup)             threads that do work, the caller of `run` among them or not
//   run(f)                              f inside the runtime; returns when f has
//   all(f, ..., g)              static  forks all but the last, calls the last, waits for all
//   Children{}; .fork(f); .join()       any number of children of the calling task
//   spawn(f); .join()           static  a task that may suspend
//   yield()                     static  lets others run
//   Event{}; .wait(); .set()            once
//   loops(times, n, make_body)          so many loops in one run: body(i) for each i below n
//   team(f)                             f(rank) by each of the threads at once
//   Barrier{n}; .arrive_and_wait()      of a team
//   in_section(f)               static  f in a code section of the profiler
//   sections_entered()                  by all threads so far
//
// Other constants: kName with the version, kWeight.
#pragma once

namespace atl::perf {

// What a task is to a runtime, so what number of them live at once it can bear. No runtime has a
// cut-off: each level forks; the heavier ones get a smaller problem.
enum class Weight { kTask, kFiber, kThread };

struct Setup {
  int threads = 1;
  bool million_tasks = false;  // the stacks are to be chosen for a million live tasks
  bool trace = false;          // the profiler is to keep a trace
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
