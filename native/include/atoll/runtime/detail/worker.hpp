// The part of a worker that the inline paths of fork, scope and spawn use, visible to every user's
// translation unit. The rest is in native/src/runtime/scheduler/worker.hpp.
//
// A deque contains words: bits 63..48 are the domain that may run the task, bits 47..3 a pointer,
// the low bits the kind. User pointers have at most 47 bits on x86-64 and 48 on aarch64 unless a
// program passes mmap a hint for more; the runtime never does.
#pragma once

#include <atomic>
#include <cstdint>

#include "atoll/build.h"
#include "atoll/runtime/asymmetric_fence.hpp"
#include "atoll/runtime/deque.hpp"
#include "atoll/runtime/detail/job_memory.hpp"
#include "atoll/runtime/export.hpp"
#include "atoll/runtime/place.hpp"
#include "atoll/runtime/worker_counts.hpp"

namespace atl::detail {

class TaskContext;
struct Job;

using Word = std::uint64_t;

// The kinds of a word. A scope's child has its own kind, so that the scope's join recognises it
// without following a pointer that may be of any kind.
enum class WordKind : Word { job = 0, fiber = 1, scope_child = 2 };
inline constexpr Word kKindMask = 7;
inline constexpr int kDomainShift = 48;
inline constexpr Word kPointerMask = ((Word{1} << kDomainShift) - 1) & ~kKindMask;

// A function to call once on whatever stack its worker is on. `execute` must not throw. `context`
// is the context of the task (stop token, task-locals). `link` is for whoever has the job: the
// queue that it is in, which leaves 0, or the scope that runs it.
struct alignas(8) Job {
  void (*execute)(Job*);
  TaskContext* context;
  Word link;
};

struct WorkerHead {
  Deque deque;                                       // words of the domain `tag` only
  Word tag = 0;                                      // domain << 48 of the current or last task
  TaskContext* context = nullptr;                    // of that task
  const std::atomic<std::uint64_t>* idle = nullptr;  // {sleepers, searchers}: Parking's word
  WorkerCounts counts;
  OwnCount spawned;  // tasks with a handle that this worker made, and those that ended here:
  OwnCount ended;    // the destructor of the runtime waits until the sums are the same
  JobMemory job_memory;
};

// The worker of this thread, or null. Never keep it across a call that may suspend: the task may
// continue on another thread. Compilers cache the thread pointer (and the address of an ordinary
// thread_local) across such calls, also under LTO; they may not merge volatile assembler.
extern "C" ATOLL_EXPORT constinit thread_local WorkerHead* atl_rt_worker
    __attribute__((tls_model("initial-exec")));

#if defined(__x86_64__)
inline WorkerHead* this_worker() {
  WorkerHead* worker;
  asm volatile(
      "movq atl_rt_worker@gottpoff(%%rip), %0\n\t"
      "movq %%fs:(%0), %0"
      : "=r"(worker));
  return worker;
}
#else
ATOLL_EXPORT WorkerHead* this_worker();  // out of line, for the same reason
#endif

// A word with this tag was pushed onto this worker's deque and some worker is idle: makes words
// public, and wakes a sleeper if no worker searches already.
ATOLL_EXPORT void offer_to_idle(WorkerHead* worker, Word tag);

// The fast half, inline. A worker that falls asleep later finds the word, although it is private.
inline void published(WorkerHead* worker, Word tag) {
  light_fence();                                                        // [producer-fence]
  if (worker->idle->load(std::memory_order_relaxed) != 0) [[unlikely]]  // [producer-look]
    offer_to_idle(worker, tag);
}

inline void* pointer_of(Word word) {
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(word & kPointerMask));
}

inline WordKind kind_of(Word word) { return static_cast<WordKind>(word & kKindMask); }

inline Word tag_of(Word word) { return word >> kDomainShift << kDomainShift; }

// Returns a word that a join popped but may not run. Nobody could see it meanwhile, so it is
// published again.
inline void put_back(WorkerHead* worker, Word word) {
  worker->deque.push(word);
  published(worker, tag_of(word));
}

// A tagged pointer would set bits of the domain.
#if defined(__SANITIZE_HWADDRESS__) || defined(__ARM_FEATURE_MEMORY_TAGGING)
#error "a task's address is kept in 48 bits: build without HWAddressSanitizer and memory tagging"
#elif defined(__has_feature)
#if __has_feature(hwaddress_sanitizer)
#error "a task's address is kept in 48 bits: build without HWAddressSanitizer and memory tagging"
#endif
#endif
inline Word word_of(const void* pointer, WordKind kind, Word tag) {
  return reinterpret_cast<std::uintptr_t>(pointer) | static_cast<Word>(kind) | tag;
}

// Throws RuntimeFault: `call` was called outside of a task but needs one.
[[noreturn]] ATOLL_EXPORT void fault_outside_task(const char* call);

inline WorkerHead* worker_or_fault(const char* call) {
  WorkerHead* worker = this_worker();
  if (worker == nullptr) [[unlikely]]
    fault_outside_task(call);
  return worker;
}

[[noreturn]] ATOLL_EXPORT void fault_no_task(const char* call);
// Throws RuntimeFault: a task waits for itself.
[[noreturn]] ATOLL_EXPORT void fault_joins_itself();
// Throws RuntimeFault: a Fork was joined a second time.
[[noreturn]] ATOLL_EXPORT void fault_joined_twice();

// Memory for a frame: from the worker's cache or, on other threads, the depot.
inline void* take_job_memory(std::size_t bytes) {
  WorkerHead* const worker = this_worker();
  return worker != nullptr ? worker->job_memory.take(bytes) : JobMemory::allocate(bytes);
}
inline void give_job_memory(void* memory, std::size_t bytes) noexcept {
  WorkerHead* const worker = this_worker();
  if (worker != nullptr) return worker->job_memory.give(memory, bytes);
  JobMemory::free(memory, bytes);
}
// Memory for a T of any alignment.
template <class T>
void* take_job_memory_for() {
  if constexpr (JobMemory::kOwnMemory<T>) return JobMemory::allocate_for<T>();
  return take_job_memory(JobMemory::kLines<T>);
}
template <class T>
void give_job_memory_for(void* memory) noexcept {
  if constexpr (JobMemory::kOwnMemory<T>) return JobMemory::free_for<T>(memory);
  give_job_memory(memory, JobMemory::kLines<T>);
}

// The domain of a place, shifted. Throws RuntimeFault if the runtime has no such place.
ATOLL_EXPORT Word tag_for(WorkerHead* worker, Place place);
// Counts a new task with a handle in its domain; not for tag 0, which nobody waits for.
ATOLL_EXPORT void count_begun(WorkerHead* worker, Word tag);
// Counts a task that ended or could not be started.
ATOLL_EXPORT void count_ended(WorkerHead* worker, Word tag);
// The same from any thread. `home` is the word of a worker of the task's runtime, with its domain.
ATOLL_EXPORT void count_ended_from_anywhere(Word home);
// Counts a new task with a handle and makes it ready by `publish`, or neither if that throws.
template <class Publish>
void count_and_publish(WorkerHead* worker, Word tag, Publish&& publish) {
  worker->spawned.add();
  if (tag != 0) count_begun(worker, tag);
  try {
    publish();
  } catch (...) {
    count_ended(worker, tag);
    throw;
  }
}
// Makes the task ready in that domain.
ATOLL_EXPORT void start_placed(WorkerHead* worker, Job* job, Word tag, bool urgent);
// Waits, like Completion::wait_slow; runs the task itself if it is on top of this worker's deque.
class Completion;
ATOLL_EXPORT void await_task(Job* job, Completion& completion) noexcept;
ATOLL_EXPORT void task_ended();

}  // namespace atl::detail
