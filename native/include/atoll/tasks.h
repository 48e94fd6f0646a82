/* Tasks of Atoll's runtime for C, and for languages that call C. C++ has runtime.hpp; its headers
 * in runtime/ explain each call in full. docs/runtime.md is the guide, "From C and other
 * languages".
 *
 *   static void work(void* context) { ... }
 *
 *   atoll_rt_runtime* runtime;
 *   if (atoll_rt_runtime_create(NULL, &runtime) != 0) fail(atoll_rt_message());
 *   atoll_rt_run(runtime, work, &context);
 *   atoll_rt_runtime_free(runtime);
 *
 * Errors. Functions that return int return 0 or an errno: EINVAL (the request is invalid, for
 * example NULL where no comment allows it, or a call that needs a task, outside of one), ENOMEM,
 * EDEADLK (the caller would wait for itself), ETIMEDOUT, ECANCELED (the task was asked to stop),
 * EBUSY. atoll_rt_message() then describes the error in one line, on this thread and until the task
 * waits again. Outputs are written only on success. No exception leaves the library; one that
 * leaves a function of yours, written in C++, becomes EINVAL with its text in the call that waits
 * for it.
 *
 * Functions of yours run on a task's stack of 256 KiB, unless the options say otherwise. Whatever
 * waits in a task may continue on another thread, so thread-local variables and errno do not keep
 * their values across a wait (docs/runtime-hazards.md). A function of yours must return: longjmp
 * out of it, or a thread that ends in it, breaks the runtime.
 *
 * Ownership. What a `_create` makes, you free with its `_free`, once. A context must live until its
 * function has returned. The runtime outlives its groups. Events and mutexes depend on nothing and
 * work between runtimes.
 *
 * Threads. "Task": call it inside a task. "Any": threads that are not workers may call it, too. */
#ifndef ATOLL_TASKS_H
#define ATOLL_TASKS_H

#include "atoll/build.h"
#include "atoll/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Runtime --------------------------------------------------------------------------------- */

typedef struct atoll_rt_runtime atoll_rt_runtime;
typedef void (*atoll_rt_function)(void* context);

/* 0 and NULL are the defaults, also those that the environment sets (ATOLL_WORKERS, ATOLL_APPROACH,
 * ATOLL_PIN): atoll_rt_options options = {.size = sizeof options}; */
typedef struct {
  size_t size;                   /* sizeof(atoll_rt_options) */
  int workers;                   /* 0: one per core */
  int unbound;                   /* 1: workers may run on all CPUs of the process */
  const atoll_rt_places* places; /* read once; NULL: this machine */
  const char* approach;          /* chooses the spread (docs/runtime-controller.md) */
  int interval_ms;               /* between two decisions; 0: 100 */
  size_t stack_bytes;            /* of a task; 0: 256 KiB */
} atoll_rt_options;

/* Any. Starts the workers. `options` may be NULL. */
ATOLL_RT_API int atoll_rt_runtime_create(const atoll_rt_options* options,
                                         atoll_rt_runtime** runtime);
/* Any. Waits for all tasks and ends the workers. EDEADLK in a task of this runtime. NULL is
 * allowed. A child of fork() may only free its parent's groups and runtimes. */
ATOLL_RT_API int atoll_rt_runtime_free(atoll_rt_runtime* runtime);
/* Any. Number of workers. */
ATOLL_RT_API int atoll_rt_workers(atoll_rt_runtime* runtime, int* workers);
/* Any. Calls the function as a task and waits for it. The calling thread may run it itself and,
 * while it waits, any task without a place, also of other callers: do not hold a lock that any task
 * takes. The call may last until such a task ends or waits. */
ATOLL_RT_API int atoll_rt_run(atoll_rt_runtime* runtime, atoll_rt_function function, void* context);
/* Any. What the runtime did so far, as JSON (docs/runtime-profiler.md). */
ATOLL_RT_API int atoll_rt_write_profile(atoll_rt_runtime* runtime, const char* path);

/* ---- Tasks ----------------------------------------------------------------------------------- */

enum {
  ATOLL_RT_ANYWHERE = 0, /* without a runtime: in the group of the caller's task */
  ATOLL_RT_ON_WORKER = 1,
  ATOLL_RT_ON_CORE = 2, /* cores and chiplets by their index in the places */
  ATOLL_RT_ON_CHIPLET = 3,
  ATOLL_RT_ON_NODE = 4, /* by OS index */
  ATOLL_RT_ON_GROUP = 5 /* from atoll_rt_group_place */
};

typedef struct {
  int kind;
  int index; /* 0 for ATOLL_RT_ANYWHERE */
} atoll_rt_place;

typedef struct atoll_rt_task atoll_rt_task;

/* Any; with NULL for the runtime: task, and the runtime is the caller's. Starts a task at the
 * place. With NULL for `task` it runs alone (see atoll_rt_detach). */
ATOLL_RT_API int atoll_rt_spawn(atoll_rt_runtime* runtime, atoll_rt_place place,
                                atoll_rt_function function, void* context, atoll_rt_task** task);
/* Any. Waits for the task, frees it and sets *task to NULL, also if the task failed. EINVAL if
 * *task is NULL, so for a second call; EDEADLK if it is the caller's own. */
ATOLL_RT_API int atoll_rt_join(atoll_rt_task** task);
/* Any. Lets the task run alone, and sets *task to NULL. The task frees itself at its end. */
ATOLL_RT_API int atoll_rt_detach(atoll_rt_task** task);
/* Any. Asks the task to stop. The task goes on until it looks. */
ATOLL_RT_API int atoll_rt_stop(atoll_rt_task* task);
/* Any. 1 if the caller's task was asked to stop, else 0. */
ATOLL_RT_API int atoll_rt_stopped(void);
/* Any. Lets other tasks run; on a thread that is not a worker, other threads. Does nothing if there
 * is no memory for another stack. */
ATOLL_RT_API void atoll_rt_yield(void);
/* Task. The worker that runs it now, and that worker's core; both may change at each wait. Either
 * may be NULL. */
ATOLL_RT_API int atoll_rt_here(int* worker, int* core);

/* Task. Calls body(context, first, last) for pieces that together are [begin, end), on several
 * workers, and waits. A piece has at least `grain` items; 0: about 32 pieces a worker. ECANCELED if
 * the task is asked to stop: then some pieces are left out. */
ATOLL_RT_API int atoll_rt_parallel_for(uint64_t begin, uint64_t end, uint64_t grain,
                                       void (*body)(void* context, uint64_t first, uint64_t last),
                                       void* context);
/* Task. Calls call(context, rank) once on each worker, at the same time, and waits. */
ATOLL_RT_API int atoll_rt_all_do(void (*call)(void* context, int worker), void* context);
/* Any. Calls the function on a thread of its own while the task waits: for functions that block in
 * the kernel. There it is in no task. On a thread that is not a worker: a plain call. */
ATOLL_RT_API int atoll_rt_blocking(atoll_rt_function function, void* context);

/* ---- Groups ---------------------------------------------------------------------------------- */

typedef struct atoll_rt_group atoll_rt_group;

/* As atoll_rt_options. */
typedef struct {
  size_t size;          /* sizeof(atoll_rt_group_options) */
  int threads;          /* at most; 0: all workers */
  const char* approach; /* chooses the group's spread */
  int spread;           /* to begin with; 0: the approach chooses */
  int min_chiplets;     /* 0: no limit */
  int max_chiplets;
  const char* remember_as; /* what the approach finds out is for the next group of this name */
} atoll_rt_group_options;

/* Any. Some of the workers, for example for one query. `options` may be NULL. */
ATOLL_RT_API int atoll_rt_group_create(atoll_rt_runtime* runtime,
                                       const atoll_rt_group_options* options,
                                       atoll_rt_group** group);
/* Any. Waits for the group's tasks. EDEADLK in one of them. NULL is allowed. */
ATOLL_RT_API int atoll_rt_group_free(atoll_rt_group* group);
/* Any. For atoll_rt_spawn, while the group exists. What such a task spawns is in the group, too. */
ATOLL_RT_API int atoll_rt_group_place(atoll_rt_group* group, atoll_rt_place* place);
/* Any. The number of chiplets that the group uses; set_spread fixes it. */
ATOLL_RT_API int atoll_rt_group_spread(atoll_rt_group* group, int* spread);
ATOLL_RT_API int atoll_rt_group_set_spread(atoll_rt_group* group, int spread);

/* ---- Waiting --------------------------------------------------------------------------------- */

/* All of these: any. A task that waits lets its worker run other tasks. */
typedef struct atoll_rt_event atoll_rt_event;
typedef struct atoll_rt_mutex atoll_rt_mutex;

#define ATOLL_RT_FOREVER UINT64_MAX

/* Something that has happened or not. Freed when nobody waits. */
ATOLL_RT_API int atoll_rt_event_create(atoll_rt_event** event);
ATOLL_RT_API void atoll_rt_event_free(atoll_rt_event* event); /* NULL is allowed */
/* Releases all waiters, and those that come before a reset. */
ATOLL_RT_API int atoll_rt_event_set(atoll_rt_event* event);
ATOLL_RT_API int atoll_rt_event_reset(atoll_rt_event* event);
/* Until it is set, or ETIMEDOUT after `ns` nanoseconds (ATOLL_RT_FOREVER: no limit); with
 * `heed_stop`, ECANCELED as soon as the caller's task is asked to stop. */
ATOLL_RT_API int atoll_rt_event_wait(atoll_rt_event* event, uint64_t ns, int heed_stop);

/* Not recursive. A task may wait while it holds one, and unlock it on another worker. */
ATOLL_RT_API int atoll_rt_mutex_create(atoll_rt_mutex** mutex);
ATOLL_RT_API void atoll_rt_mutex_free(atoll_rt_mutex* mutex); /* NULL is allowed */
ATOLL_RT_API int atoll_rt_mutex_lock(atoll_rt_mutex* mutex);
ATOLL_RT_API int atoll_rt_mutex_try_lock(atoll_rt_mutex* mutex); /* EBUSY: somebody holds it */
/* EINVAL if nobody holds it. */
ATOLL_RT_API int atoll_rt_mutex_unlock(atoll_rt_mutex* mutex);

#ifdef __cplusplus
}
#endif

#endif
