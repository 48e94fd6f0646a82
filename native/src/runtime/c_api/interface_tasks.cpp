// atoll/tasks.h: the runtime's tasks for C.
#include <algorithm>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>

#include "atoll/runtime/all_do.hpp"
#include "atoll/runtime/blocking.hpp"
#include "atoll/runtime/event.hpp"
#include "atoll/runtime/group.hpp"
#include "atoll/runtime/mutex.hpp"
#include "atoll/runtime/parallel.hpp"
#include "atoll/runtime/runtime.hpp"
#include "atoll/runtime/this_task.hpp"
#include "atoll/tasks.h"
#include "guard.hpp"
#include "places_handle.hpp"
#include "scheduler/worker.hpp"

// What atoll/build.h refers to.
extern "C" const char ATL_RT_BUILT = 0;

struct atoll_rt_runtime : atl::Runtime {
  using atl::Runtime::Runtime;
};
struct atoll_rt_group {
  atl::Runtime& runtime;
  atl::Group group;
};
struct atoll_rt_event : atl::Event {};
struct atoll_rt_mutex : atl::Mutex {};

namespace {

using atl::RuntimeFault;
using atl::runtime::guarded;
using atl::runtime::set_message;
using atl::runtime::Worker;

// A handle of a task is its state, so that a spawn needs no more memory than in C++.
using State = atl::detail::TaskState<void>;
atoll_rt_task* handle_of(State* state) { return reinterpret_cast<atoll_rt_task*>(state); }
State* state_of(atoll_rt_task* task) { return reinterpret_cast<State*>(task); }

template <typename T>
T& given(T* pointer, const char* name) {
  if (pointer == nullptr) throw RuntimeFault(std::string(name) + " is NULL");
  return *pointer;
}

int failed(int code, const char* text) {
  set_message(text);
  return code;
}

void need_task(const char* call) {
  if (atl::this_task::inside()) return;
  throw RuntimeFault(std::string(call) +
                     " was called outside of a task: call it in a function that atoll_rt_run or "
                     "atoll_rt_spawn starts");
}

// The caller's options, whose version may be older or newer than this library's.
template <typename Options>
Options read(const Options* options) {
  Options known{};
  if (options == nullptr) return known;
  const std::size_t size = options->size;
  if (size < sizeof(Options)) {  // this is the first version
    throw RuntimeFault("size of the options is " + std::to_string(size) +
                       ": set it to their sizeof, " + std::to_string(sizeof(Options)));
  }
  const auto* const bytes = reinterpret_cast<const char*>(options);
  if (std::any_of(bytes + sizeof(Options), bytes + size, [](char byte) { return byte != 0; })) {
    throw RuntimeFault(
        "an option is set that this version of the library does not know: compile with its own "
        "atoll/tasks.h");
  }
  return *options;
}

static_assert(static_cast<int>(atl::Place::Kind::anywhere) == ATOLL_RT_ANYWHERE);
static_assert(static_cast<int>(atl::Place::Kind::worker) == ATOLL_RT_ON_WORKER);
static_assert(static_cast<int>(atl::Place::Kind::core) == ATOLL_RT_ON_CORE);
static_assert(static_cast<int>(atl::Place::Kind::chiplet) == ATOLL_RT_ON_CHIPLET);
static_assert(static_cast<int>(atl::Place::Kind::node) == ATOLL_RT_ON_NODE);
static_assert(static_cast<int>(atl::Place::Kind::group) == ATOLL_RT_ON_GROUP);

atl::Place place_of(atoll_rt_place place) {
  if (place.kind < ATOLL_RT_ANYWHERE || place.kind > ATOLL_RT_ON_GROUP) {
    throw RuntimeFault("the kind of a place is " + std::to_string(place.kind) +
                       ": give one of ATOLL_RT_ANYWHERE to ATOLL_RT_ON_GROUP");
  }
  return {static_cast<atl::Place::Kind>(place.kind), place.index};
}

atl::Task<> taken(atoll_rt_task** task) {
  atoll_rt_task*& handle = given(task, "task");
  if (handle == nullptr) {
    throw RuntimeFault("*task is NULL: the task was joined or detached already, or never spawned");
  }
  return atl::Task<>(state_of(std::exchange(handle, nullptr)));
}

template <typename Handle>
int make(Handle** out, const char* name) {
  return guarded([&] {
    Handle*& handle = given(out, name);
    handle = new Handle;
  });
}

}  // namespace

int atoll_rt_runtime_create(const atoll_rt_options* options, atoll_rt_runtime** runtime) {
  return guarded([&] {
    atoll_rt_runtime*& out = given(runtime, "runtime");
    const atoll_rt_options from = read(options);
    atl::RuntimeOptions to;
    to.workers = from.workers;
    if (from.unbound != 0) to.pin = false;
    if (from.places != nullptr) to.places = from.places->places;
    if (from.approach != nullptr) to.approach = from.approach;
    if (from.interval_ms != 0) to.interval = std::chrono::milliseconds(from.interval_ms);
    if (from.stack_bytes != 0) to.stacks.bytes = from.stack_bytes;
    out = std::make_unique<atoll_rt_runtime>(to).release();
  });
}

int atoll_rt_runtime_free(atoll_rt_runtime* runtime) {
  if (runtime == nullptr) return 0;
  const Worker* const worker = Worker::here();
  if (worker != nullptr && &worker->team == &runtime->team()) {
    return failed(EDEADLK, "a task cannot free its own runtime, which waits for all tasks");
  }
  delete runtime;
  return 0;
}

int atoll_rt_workers(atoll_rt_runtime* runtime, int* workers) {
  return guarded([&] { given(workers, "workers") = given(runtime, "runtime").workers(); });
}

int atoll_rt_run(atoll_rt_runtime* runtime, atoll_rt_function function, void* context) {
  return guarded([&] {
    given(function, "function");
    given(runtime, "runtime").run([=] { function(context); });
  });
}

int atoll_rt_write_profile(atoll_rt_runtime* runtime, const char* path) {
  return guarded([&] {
    given(path, "path");
    atl::write_profile_json(given(runtime, "runtime").profile(), path);
  });
}

int atoll_rt_spawn(atoll_rt_runtime* runtime, atoll_rt_place place, atoll_rt_function function,
                   void* context, atoll_rt_task** task) {
  return guarded([&] {
    given(function, "function");
    const atl::Place where = place_of(place);
    const auto call = [=] { function(context); };
    atl::Task<> spawned;
    if (runtime != nullptr) {
      spawned = runtime->spawn(where, call);
    } else {
      need_task("atoll_rt_spawn without a runtime");
      spawned =
          where.kind == atl::Place::Kind::anywhere ? atl::spawn(call) : atl::spawn(where, call);
    }
    if (task != nullptr) {
      *task = handle_of(spawned.give_up());
    } else {
      spawned.detach();
    }
  });
}

int atoll_rt_join(atoll_rt_task** task) {
  return guarded([&] {
    if (task != nullptr && *task != nullptr && atl::detail::is_part_of(*state_of(*task))) {
      return failed(EDEADLK, "a task cannot join itself, nor can its forks and loops");
    }
    taken(task).join();
    return 0;
  });
}

int atoll_rt_detach(atoll_rt_task** task) {
  return guarded([&] { taken(task).detach(); });
}

int atoll_rt_stop(atoll_rt_task* task) {
  return guarded([&] {
    given(task, "task");
    state_of(task)->own.request_stop();
  });
}

int atoll_rt_stopped(void) {
  const Worker* const worker = Worker::here();
  return worker != nullptr && worker->context != nullptr && worker->context->stop_requested();
}

void atoll_rt_yield(void) {
  guarded([] {
    atl::yield();
    return 0;
  });
}

int atoll_rt_here(int* worker, int* core) {
  return guarded([&] {
    need_task("atoll_rt_here");
    if (worker != nullptr) *worker = atl::this_task::worker();
    if (core != nullptr) *core = atl::this_task::core();
  });
}

int atoll_rt_parallel_for(uint64_t begin, uint64_t end, uint64_t grain,
                          void (*body)(void* context, uint64_t first, uint64_t last),
                          void* context) {
  return guarded([&] {
    given(body, "body");
    need_task("atoll_rt_parallel_for");
    atl::parallel_for(
        begin, end, [=](uint64_t first, uint64_t last) { body(context, first, last); }, grain);
  });
}

int atoll_rt_all_do(void (*call)(void* context, int worker), void* context) {
  return guarded([&] {
    given(call, "call");
    need_task("atoll_rt_all_do");
    atl::all_do([=](int worker) { call(context, worker); });
  });
}

int atoll_rt_blocking(atoll_rt_function function, void* context) {
  return guarded([&] {
    given(function, "function");
    atl::blocking([=] { function(context); });
  });
}

int atoll_rt_group_create(atoll_rt_runtime* runtime, const atoll_rt_group_options* options,
                          atoll_rt_group** group) {
  return guarded([&] {
    atoll_rt_group*& out = given(group, "group");
    given(runtime, "runtime");
    const atoll_rt_group_options from = read(options);
    atl::GroupOptions to;
    to.threads = from.threads;
    if (from.approach != nullptr) to.approach = from.approach;
    to.spread = from.spread;
    to.min_chiplets = from.min_chiplets;
    to.max_chiplets = from.max_chiplets;
    if (from.remember_as != nullptr) to.remember_as = from.remember_as;
    out = new atoll_rt_group{*runtime, atl::Group(*runtime, to)};
  });
}

int atoll_rt_group_free(atoll_rt_group* group) {
  if (group == nullptr) return 0;
  const Worker* const worker = Worker::here();
  if (worker != nullptr && &worker->team == &group->runtime.team() &&
      worker->tag == worker->team.place_domains.tag_of(group->group.place())) {
    return failed(EDEADLK, "a task cannot free its own group, which waits for all its tasks");
  }
  delete group;
  return 0;
}

int atoll_rt_group_place(atoll_rt_group* group, atoll_rt_place* place) {
  return guarded([&] {
    const atl::Place found = given(group, "group").group.place();
    given(place, "place") = {static_cast<int>(found.kind), found.index};
  });
}

int atoll_rt_group_spread(atoll_rt_group* group, int* spread) {
  return guarded([&] { given(spread, "spread") = given(group, "group").group.spread(); });
}

int atoll_rt_group_set_spread(atoll_rt_group* group, int spread) {
  return guarded([&] { given(group, "group").group.set_spread(spread); });
}

int atoll_rt_event_create(atoll_rt_event** event) { return make(event, "event"); }

void atoll_rt_event_free(atoll_rt_event* event) { delete event; }

int atoll_rt_event_set(atoll_rt_event* event) {
  return guarded([&] { given(event, "event").set(); });
}

int atoll_rt_event_reset(atoll_rt_event* event) {
  return guarded([&] { given(event, "event").reset(); });
}

int atoll_rt_event_wait(atoll_rt_event* event, uint64_t ns, int heed_stop) {
  return guarded([&] {
    given(event, "event");
    const std::stop_token stop = heed_stop != 0 ? atl::this_task::stop_token() : std::stop_token{};
    constexpr auto kMost = static_cast<uint64_t>(std::chrono::nanoseconds::max().count());
    const bool set = ns == ATOLL_RT_FOREVER
                         ? event->wait(stop)
                         : event->wait_for(std::chrono::nanoseconds(std::min(ns, kMost)), stop);
    if (set) return 0;
    return stop.stop_requested() ? failed(ECANCELED, "the task was asked to stop")
                                 : failed(ETIMEDOUT, "the event was not set in time");
  });
}

int atoll_rt_mutex_create(atoll_rt_mutex** mutex) { return make(mutex, "mutex"); }

void atoll_rt_mutex_free(atoll_rt_mutex* mutex) { delete mutex; }

int atoll_rt_mutex_lock(atoll_rt_mutex* mutex) {
  return guarded([&] { given(mutex, "mutex").lock(); });
}

int atoll_rt_mutex_try_lock(atoll_rt_mutex* mutex) {
  return guarded([&] {
    return given(mutex, "mutex").try_lock() ? 0 : failed(EBUSY, "somebody holds the mutex");
  });
}

int atoll_rt_mutex_unlock(atoll_rt_mutex* mutex) {
  return guarded([&] { given(mutex, "mutex").unlock(); });
}
