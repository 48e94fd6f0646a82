// The out-of-line part of tasks with a handle: what they need from workers.
#include "atoll/runtime/task.hpp"

#include <execinfo.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <string_view>

#include "scheduler/process.hpp"
#include "waiting/suspension.hpp"

namespace atl::detail {

using runtime::Worker;

void fault_outside_task(const char* call) {
  throw RuntimeFault(std::string(call) +
                     (runtime::forks_before() == 0
                          ? " was called outside of a task: call it inside Runtime::run, or use "
                            "Runtime::spawn from a thread"
                          : " was called outside of a task, which a child of fork() is even where "
                            "its parent was in one: make a Runtime in the child"));
}

void fault_no_task(const char* call) {
  throw RuntimeFault(std::string(call) +
                     ": this handle has no task; it was joined, detached or moved from");
}

void fault_joins_itself() {
  throw RuntimeFault(
      "join: a task, or a fork, a scope's child or a loop inside it, joins the task itself, which "
      "would wait for ever; join it outside, or detach it");
}

void fault_joined_twice() {
  throw RuntimeFault("join: this fork was joined before; keep the value that the first join gave");
}

void fault_left_coroutine(const char* function, void* code) noexcept {
  // "... [with Promise = TYPE]", or without the "with".
  std::string_view promise = function;
  promise.remove_prefix(promise.find("Promise = ") + std::strlen("Promise = "));
  promise.remove_suffix(1);
  std::fprintf(stderr,
               "atoll: an exception left a coroutine of type %.*s that a worker resumed: catch it "
               "there or in unhandled_exception of its promise; the coroutine's code: ",
               static_cast<int>(promise.size()), promise.data());
  std::fflush(stderr);
  backtrace_symbols_fd(&code, 1, STDERR_FILENO);
  std::terminate();  // which says what the exception is
}

void offer_to_idle(WorkerHead* head, Word tag) { static_cast<Worker*>(head)->offer_to_idle(tag); }

Word tag_for(WorkerHead* worker, Place place) {
  return static_cast<Worker*>(worker)->team.place_domains.tag_of(place);
}

void start_placed(WorkerHead* head, Job* job, Word tag, bool urgent) {
  auto& worker = *static_cast<Worker*>(head);
  const Word word = word_of(job, WordKind::job, tag);
  count_and_publish(head, tag, [&] {
    if (urgent) {
      worker.team.inject_urgent(word);
    } else {
      worker.make_ready(word);
    }
  });
}

void count_ended(WorkerHead* head, Word tag) {
  head->ended.add_released();  // the tasks that it spawned were counted as begun before
  if (tag != 0) static_cast<Worker*>(head)->team.domains.of(tag).count_ended();
}

void count_ended_from_anywhere(Word home) {
  runtime::Team& team = static_cast<Worker*>(static_cast<WorkerHead*>(pointer_of(home)))->team;
  Worker* const here = Worker::here();
  if (here != nullptr && &here->team == &team) return count_ended(here, tag_of(home));
  team.count_ended_as_visitor(tag_of(home));
}

void count_begun(WorkerHead* worker, Word tag) {
  static_cast<Worker*>(worker)->team.domains.of(tag).count_begun();
}

void await_task(Job* job, Completion& completion) noexcept {
  Worker* const worker = Worker::here();
  if (worker != nullptr && !completion.done()) {
    const Word word = word_of(job, WordKind::job, worker->tag);
    if (worker->deque.newest() == word && worker->deque.pop() == word) {
      TaskContext* const own = worker->context;
      worker->context = job->context;
      worker->counts.inline_forks.add();
      job->execute(job);
      Worker::here()->context = own;
    }
  }
  completion.wait();
}

// A task runs on workers only.
void task_ended() {
  Worker* const worker = Worker::here();
  if (worker == nullptr) [[unlikely]] {
    std::fputs("atoll: a task returned in a child of fork(): call exec or _exit there\n", stderr);
    std::abort();
  }
  count_ended(worker, worker->tag);
}

}  // namespace atl::detail
