// A part of a task that can be asked to stop: by a time limit, a stop token, or another thread.
//
//   try {
//     atl::Stoppable query(std::chrono::seconds(5));
//     atl::parallel_for(0, rows, scan);
//   } catch (const atl::Stopped&) {
//     reply("timed out");
//   }
//
// Promises
//  - At its limit it asks to stop what the task does until it is destroyed: forks, scopes, loops,
//    and waits with this_task::stop_token(). A stop of the task reaches them, too. What the task
//    spawns has a stop token of its own.
//  - A loop (parallel.hpp) then leaves the rest out and throws Stopped. Other code looks at the
//    stop token, or does not stop.
//  - At a time limit the stop callbacks of users run on the thread of all time limits. They may
//    sleep and wait, but not for another limit, which is late until they return, nor for the end of
//    the part, which waits for them.
//  - The task may go on after its end; stoppable parts may be nested.
//  - It must stay on the stack of its task and be destroyed there in the reverse order of creation.
//    In a coroutine it has no effect after a co_await.
//  - Throws RuntimeFault outside of a task.
#pragma once

#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <stop_token>

#include "atoll/runtime/detail/deadline.hpp"
#include "atoll/runtime/detail/task_context.hpp"
#include "atoll/runtime/export.hpp"

namespace atl {

// A loop was asked to stop and has left items out.
class ATOLL_EXPORT Stopped : public std::exception {
 public:
  const char* what() const noexcept override;
};

class ATOLL_EXPORT Stoppable {
 public:
  // By `request_stop` alone.
  Stoppable() : Stoppable(std::stop_token(), detail::kNever) {}
  explicit Stoppable(const std::stop_token& stop) : Stoppable(stop, detail::kNever) {}
  // A limit of time may allocate. It starts the timer's thread, which may throw RuntimeFault.
  template <class Rep, class Period>
  explicit Stoppable(const std::chrono::duration<Rep, Period>& limit,
                     const std::stop_token& stop = {})
      : Stoppable(stop, detail::deadline_after(limit)) {}
  template <class Clock, class Duration>
  explicit Stoppable(const std::chrono::time_point<Clock, Duration>& limit,
                     const std::stop_token& stop = {})
      : Stoppable(stop, detail::deadline_at(limit)) {}
  ~Stoppable();
  Stoppable(const Stoppable&) = delete;
  Stoppable& operator=(const Stoppable&) = delete;

  // Any thread, while it lives.
  void request_stop() { context_.request_stop(); }
  bool stop_requested() const { return context_.stop_requested(); }

 private:
  struct Forward {
    detail::TaskContext* context;
    void operator()() const { context->request_stop(); }
  };
  struct Alarm;

  Stoppable(const std::stop_token& stop, detail::Deadline limit);

  detail::TaskContext* const outer_;
  detail::TaskContext context_;
  std::optional<std::stop_callback<Forward>> stop_;
  std::unique_ptr<Alarm> alarm_;
};

namespace detail {
// What a loop does between its pieces. Lets an urgent task in. Throws Stopped if the running part
// of the task was asked to stop.
ATOLL_EXPORT void between_pieces();
}  // namespace detail

}  // namespace atl
