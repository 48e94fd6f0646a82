/* atoll/tasks.h from a C11 program: every function, its answers and its refusals. Prints each check
 * that fails and ends with 1 if there was one. */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "atoll/tasks.h"
#include "check.h"

static atomic_int failures = 0;

static const atoll_rt_place anywhere = {ATOLL_RT_ANYWHERE, 0};
static atoll_rt_runtime* runtime = NULL;

static int says(const char* words) { return strstr(atoll_rt_message(), words) != NULL; }

static void nothing(void* context) { (void)context; }

/* ---- Runtime and options --------------------------------------------------------------------- */

static void test_options(void) {
  atoll_rt_runtime* made = NULL;
  CHECK(atoll_rt_runtime_create(NULL, NULL) == EINVAL && says("runtime is NULL"));
  atoll_rt_options options = {0};
  CHECK(atoll_rt_runtime_create(&options, &made) == EINVAL && says("size of the options is 0"));
  options.size = sizeof options;
  options.workers = -1;
  CHECK(atoll_rt_runtime_create(&options, &made) == EINVAL && says("workers is -1"));
  options.workers = 1;
  options.interval_ms = -1;
  CHECK(atoll_rt_runtime_create(&options, &made) == EINVAL && says("interval is -1 ms"));
  options.interval_ms = 0;
  options.approach = "fastest";
  CHECK(atoll_rt_runtime_create(&options, &made) == EINVAL && says("fastest"));
  options.approach = NULL;
  options.stack_bytes = 1;
  CHECK(atoll_rt_runtime_create(&options, &made) == EINVAL);
  CHECK(made == NULL);

  /* A newer program: what the library does not know must be 0. */
  struct {
    atoll_rt_options known;
    int newer;
  } later = {{0}, 0};
  later.known.size = sizeof later;
  later.known.workers = 1;
  CHECK(atoll_rt_runtime_create(&later.known, &made) == 0);
  CHECK(atoll_rt_runtime_free(made) == 0);
  later.newer = 1;
  CHECK(atoll_rt_runtime_create(&later.known, &made) == EINVAL && says("does not know"));

  atoll_rt_places* places = NULL;
  const int cpu = 0;
  CHECK(atoll_rt_places_synthetic("chiplet:2 core:2", &cpu, 1, &places) == 0);
  atoll_rt_options all = {.size = sizeof all,
                          .unbound = 1,
                          .places = places,
                          .approach = "static:2",
                          .interval_ms = 50,
                          .stack_bytes = 64 << 10};
  CHECK(atoll_rt_runtime_create(&all, &made) == 0);
  atoll_rt_places_free(places);
  int workers = 0;
  CHECK(atoll_rt_workers(made, &workers) == 0 && workers == 4);
  CHECK(atoll_rt_workers(NULL, &workers) == EINVAL && atoll_rt_workers(made, NULL) == EINVAL);
  CHECK(atoll_rt_run(made, nothing, NULL) == 0);
  CHECK(atoll_rt_runtime_free(made) == 0);
  CHECK(atoll_rt_runtime_free(NULL) == 0);
}

static void test_profile(void) {
  const char* const path = "c_tasks_profile.json";
  CHECK(atoll_rt_write_profile(runtime, path) == 0 && remove(path) == 0);
  CHECK(atoll_rt_write_profile(runtime, "/no/such/folder/profile.json") == EINVAL);
  CHECK(atoll_rt_write_profile(NULL, path) == EINVAL);
  CHECK(atoll_rt_write_profile(runtime, NULL) == EINVAL && says("path is NULL"));
}

/* ---- Tasks ----------------------------------------------------------------------------------- */

/* throwing.cpp */
void throw_text(void* context);
void throw_number(void* context);

static void test_exceptions(void) {
  CHECK(atoll_rt_run(runtime, throw_text, NULL) == EINVAL && says("the page is torn"));
  CHECK(atoll_rt_run(runtime, throw_number, NULL) == EINVAL && says("no std::exception"));
  CHECK(atoll_rt_blocking(throw_text, NULL) == EINVAL && says("the page is torn"));
  atoll_rt_task* task = NULL;
  CHECK(atoll_rt_spawn(runtime, anywhere, throw_text, NULL, &task) == 0);
  CHECK(atoll_rt_join(&task) == EINVAL && task == NULL && says("the page is torn"));
}

typedef struct {
  int n;
  long result;
} fib_call;

static void fib(void* context) {
  fib_call* const call = context;
  if (call->n < 2) {
    call->result = call->n;
    return;
  }
  fib_call left = {call->n - 1, 0};
  fib_call right = {call->n - 2, 0};
  atoll_rt_task* task = NULL;
  CHECK(atoll_rt_spawn(NULL, anywhere, fib, &left, &task) == 0);
  fib(&right);
  CHECK(atoll_rt_join(&task) == 0 && task == NULL);
  call->result = left.result + right.result;
}

static void test_spawn_and_join(void) {
  fib_call call = {15, 0};
  CHECK(atoll_rt_run(runtime, fib, &call) == 0 && call.result == 610);

  atoll_rt_task* task = NULL;
  CHECK(atoll_rt_spawn(runtime, anywhere, nothing, NULL, &task) == 0);
  CHECK(atoll_rt_join(&task) == 0);
  CHECK(atoll_rt_join(&task) == EINVAL && says("joined or detached already"));
  CHECK(atoll_rt_detach(&task) == EINVAL && atoll_rt_join(NULL) == EINVAL);
  CHECK(atoll_rt_stop(task) == EINVAL && says("task is NULL"));

  CHECK(atoll_rt_run(runtime, NULL, NULL) == EINVAL && says("function is NULL"));
  CHECK(atoll_rt_run(NULL, nothing, NULL) == EINVAL && says("runtime is NULL"));
  CHECK(atoll_rt_spawn(runtime, anywhere, NULL, NULL, &task) == EINVAL);
  CHECK(atoll_rt_spawn(NULL, anywhere, nothing, NULL, &task) == EINVAL &&
        says("atoll_rt_spawn without a runtime was called outside of a task"));
  const atoll_rt_place nowhere = {77, 0};
  CHECK(atoll_rt_spawn(runtime, nowhere, nothing, NULL, &task) == EINVAL && says("is 77"));
  const atoll_rt_place no_core = {ATOLL_RT_ON_CORE, 99999};
  CHECK(atoll_rt_spawn(runtime, no_core, nothing, NULL, &task) == EINVAL && says("99999"));
  const atoll_rt_place no_group = {ATOLL_RT_ON_GROUP, 60000};
  CHECK(atoll_rt_spawn(runtime, no_group, nothing, NULL, &task) == EINVAL);
  CHECK(task == NULL);
}

static void note_place(void* context) {
  int* const found = context;
  CHECK(atoll_rt_here(&found[0], &found[1]) == 0);
  CHECK(atoll_rt_here(NULL, NULL) == 0);
}

static void test_places(void) {
  int found[2] = {-1, -1};
  atoll_rt_task* task = NULL;
  const atoll_rt_place second = {ATOLL_RT_ON_WORKER, 1};
  CHECK(atoll_rt_spawn(runtime, second, note_place, found, &task) == 0);
  CHECK(atoll_rt_join(&task) == 0 && found[0] == 1 && found[1] >= 0);
  CHECK(atoll_rt_here(&found[0], NULL) == EINVAL && says("outside of a task"));
}

static void no_items(void* context, uint64_t first, uint64_t last) {
  CHECK(context == NULL && first == last);
}

static void until_stopped(void* context) {
  while (!atoll_rt_stopped()) atoll_rt_yield();
  CHECK(atoll_rt_parallel_for(0, 1000, 0, no_items, NULL) == ECANCELED && says("asked to stop"));
  *(int*)context = 1;
}

static atoll_rt_task* own_handle;
static atoll_rt_event* handle_known;

static void join_own_task(void* context, uint64_t first, uint64_t last) {
  (void)context, (void)first, (void)last;
  atoll_rt_task* own = own_handle;
  CHECK(atoll_rt_join(&own) == EDEADLK && own == own_handle && says("itself"));
}

static void join_itself(void* context) {
  (void)context;
  CHECK(atoll_rt_event_wait(handle_known, ATOLL_RT_FOREVER, 0) == 0);
  atoll_rt_task* own = own_handle;
  CHECK(atoll_rt_join(&own) == EDEADLK && own == own_handle && says("itself"));
  CHECK(atoll_rt_parallel_for(0, 4, 1, join_own_task, NULL) == 0);
  CHECK(atoll_rt_runtime_free(runtime) == EDEADLK && says("own runtime"));
}

static void test_stop_and_itself(void) {
  int stopped = 0;
  atoll_rt_task* task = NULL;
  CHECK(atoll_rt_spawn(runtime, anywhere, until_stopped, &stopped, &task) == 0);
  CHECK(atoll_rt_stop(task) == 0);
  CHECK(atoll_rt_join(&task) == 0 && stopped == 1);
  CHECK(atoll_rt_stopped() == 0);
  atoll_rt_yield();

  CHECK(atoll_rt_event_create(&handle_known) == 0);
  CHECK(atoll_rt_spawn(runtime, anywhere, join_itself, NULL, &own_handle) == 0);
  task = own_handle;
  CHECK(atoll_rt_event_set(handle_known) == 0);
  CHECK(atoll_rt_join(&task) == 0);
  atoll_rt_event_free(handle_known);
}

static void set_it(void* event) { CHECK(atoll_rt_event_set(event) == 0); }

static void test_detached(void) {
  atoll_rt_event* done = NULL;
  CHECK(atoll_rt_event_create(&done) == 0);
  CHECK(atoll_rt_spawn(runtime, anywhere, set_it, done, NULL) == 0);
  CHECK(atoll_rt_event_wait(done, ATOLL_RT_FOREVER, 0) == 0);
  CHECK(atoll_rt_event_reset(done) == 0);
  atoll_rt_task* task = NULL;
  CHECK(atoll_rt_spawn(runtime, anywhere, set_it, done, &task) == 0);
  CHECK(atoll_rt_detach(&task) == 0 && task == NULL);
  CHECK(atoll_rt_event_wait(done, ATOLL_RT_FOREVER, 0) == 0);
  atoll_rt_event_free(done);
}

/* ---- Loops, every worker, blocking ----------------------------------------------------------- */

enum { kItems = 10000 };
static atomic_uchar touched[kItems];

static void touch(void* context, uint64_t first, uint64_t last) {
  CHECK(context == touched);
  for (uint64_t i = first; i < last; ++i) ++touched[i];
}

static void touch_all(void* context) {
  CHECK(atoll_rt_parallel_for(0, kItems, 0, touch, context) == 0);
  CHECK(atoll_rt_parallel_for(5, 5, 0, touch, NULL) == 0);
  CHECK(atoll_rt_parallel_for(0, 1, 0, NULL, NULL) == EINVAL && says("body is NULL"));
}

static void count_worker(void* context, int worker) { ++((atomic_int*)context)[worker]; }

static void ask_all(void* context) {
  CHECK(atoll_rt_all_do(count_worker, context) == 0);
  CHECK(atoll_rt_all_do(NULL, NULL) == EINVAL && says("call is NULL"));
}

static void off_the_worker(void* context) { *(int*)context = atoll_rt_here(NULL, NULL) == EINVAL; }

static void block(void* context) { CHECK(atoll_rt_blocking(off_the_worker, context) == 0); }

static void test_loops(void) {
  CHECK(atoll_rt_run(runtime, touch_all, touched) == 0);
  for (int i = 0; i < kItems; ++i) CHECK(touched[i] == 1);
  CHECK(atoll_rt_parallel_for(0, 1, 0, touch, NULL) == EINVAL &&
        says("atoll_rt_parallel_for was called outside of a task"));

  atomic_int calls[2] = {0, 0};
  CHECK(atoll_rt_run(runtime, ask_all, calls) == 0 && calls[0] == 1 && calls[1] == 1);
  CHECK(atoll_rt_all_do(count_worker, calls) == EINVAL && says("outside of a task"));

  int off = 0;
  CHECK(atoll_rt_run(runtime, block, &off) == 0 && off == 1);
  off = 0;
  CHECK(atoll_rt_blocking(off_the_worker, &off) == 0 && off == 1);
  CHECK(atoll_rt_blocking(NULL, NULL) == EINVAL && says("function is NULL"));
}

/* ---- Groups ---------------------------------------------------------------------------------- */

static void free_own_group(void* group) {
  CHECK(atoll_rt_group_free(group) == EDEADLK && says("own group"));
}

static void test_groups(void) {
  atoll_rt_group* group = NULL;
  CHECK(atoll_rt_group_create(NULL, NULL, &group) == EINVAL && says("runtime is NULL"));
  CHECK(atoll_rt_group_create(runtime, NULL, NULL) == EINVAL && says("group is NULL"));
  atoll_rt_group_options options = {.size = sizeof options, .threads = 99};
  CHECK(atoll_rt_group_create(runtime, &options, &group) == EINVAL && group == NULL);
  options.threads = 1;
  options.approach = "static-local";
  CHECK(atoll_rt_group_create(runtime, &options, &group) == 0);
  atoll_rt_place place = {0, 0};
  CHECK(atoll_rt_group_place(group, &place) == 0 && place.kind == ATOLL_RT_ON_GROUP);
  CHECK(atoll_rt_group_place(NULL, &place) == EINVAL);
  CHECK(atoll_rt_group_place(group, NULL) == EINVAL && says("place is NULL"));
  int spread = 0;
  CHECK(atoll_rt_group_spread(group, &spread) == 0 && spread == 1);
  CHECK(atoll_rt_group_set_spread(group, 1) == 0);
  CHECK(atoll_rt_group_set_spread(group, 99) == EINVAL);
  CHECK(atoll_rt_group_spread(NULL, &spread) == EINVAL);
  CHECK(atoll_rt_group_set_spread(NULL, 1) == EINVAL);
  atoll_rt_task* task = NULL;
  CHECK(atoll_rt_spawn(runtime, place, free_own_group, group, &task) == 0);
  CHECK(atoll_rt_join(&task) == 0);
  CHECK(atoll_rt_group_free(group) == 0 && atoll_rt_group_free(NULL) == 0);
}

/* ---- Waiting --------------------------------------------------------------------------------- */

typedef struct {
  atoll_rt_mutex* mutex;
  long sum; /* under the mutex */
} counted;

static void add_many(void* context, uint64_t first, uint64_t last) {
  counted* const shared = context;
  for (uint64_t i = first; i < last; ++i) {
    CHECK(atoll_rt_mutex_lock(shared->mutex) == 0);
    ++shared->sum;
    CHECK(atoll_rt_mutex_unlock(shared->mutex) == 0);
  }
}

static void add_all(void* context) {
  CHECK(atoll_rt_parallel_for(0, 1000, 10, add_many, context) == 0);
}

static void wait_until_stopped(void* event) {
  CHECK(atoll_rt_event_wait(event, ATOLL_RT_FOREVER, 1) == ECANCELED && says("stop"));
}

static void test_waiting(void) {
  counted shared = {NULL, 0};
  CHECK(atoll_rt_mutex_create(NULL) == EINVAL && says("mutex is NULL"));
  CHECK(atoll_rt_mutex_create(&shared.mutex) == 0);
  CHECK(atoll_rt_run(runtime, add_all, &shared) == 0 && shared.sum == 1000);
  CHECK(atoll_rt_mutex_try_lock(shared.mutex) == 0);
  CHECK(atoll_rt_mutex_try_lock(shared.mutex) == EBUSY);
  CHECK(atoll_rt_mutex_unlock(shared.mutex) == 0);
  CHECK(atoll_rt_mutex_unlock(shared.mutex) == EINVAL && says("not locked"));
  CHECK(atoll_rt_mutex_lock(NULL) == EINVAL && atoll_rt_mutex_try_lock(NULL) == EINVAL);
  CHECK(atoll_rt_mutex_unlock(NULL) == EINVAL);
  atoll_rt_mutex_free(shared.mutex);
  atoll_rt_mutex_free(NULL);

  atoll_rt_event* event = NULL;
  CHECK(atoll_rt_event_create(NULL) == EINVAL && says("event is NULL"));
  CHECK(atoll_rt_event_create(&event) == 0);
  CHECK(atoll_rt_event_wait(event, 1000, 0) == ETIMEDOUT && says("in time"));
  atoll_rt_task* task = NULL;
  CHECK(atoll_rt_spawn(runtime, anywhere, wait_until_stopped, event, &task) == 0);
  CHECK(atoll_rt_stop(task) == 0 && atoll_rt_join(&task) == 0);
  CHECK(atoll_rt_event_set(event) == 0 && atoll_rt_event_wait(event, UINT64_MAX - 1, 1) == 0);
  CHECK(atoll_rt_event_set(NULL) == EINVAL && atoll_rt_event_reset(NULL) == EINVAL);
  CHECK(atoll_rt_event_wait(NULL, 0, 0) == EINVAL);
  atoll_rt_event_free(event);
  atoll_rt_event_free(NULL);
}

int main(void) {
  const int cpu = 0;
  atoll_rt_places* places = NULL;
  CHECK(atoll_rt_places_synthetic("chiplet:2 core:1", &cpu, 1, &places) == 0);
  const atoll_rt_options options = {.size = sizeof options, .unbound = 1, .places = places};
  if (atoll_rt_runtime_create(&options, &runtime) != 0) {
    fprintf(stderr, "%s\n", atoll_rt_message());
    return 1;
  }
  atoll_rt_places_free(places);
  test_options();
  test_profile();
  test_exceptions();
  test_spawn_and_join();
  test_places();
  test_stop_and_itself();
  test_detached();
  test_loops();
  test_groups();
  test_waiting();
  CHECK(atoll_rt_runtime_free(runtime) == 0);
  if (failures == 0) printf("tasks in C: all as it should be\n");
  return failures == 0 ? 0 : 1;
}
