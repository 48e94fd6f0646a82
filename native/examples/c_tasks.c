/* Tasks from C: a loop over all workers, a stage on a group that waits for it, and a stop. */
#include <atoll/tasks.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
  atoll_rt_event* ready;
  atoll_rt_mutex* mutex;
  long total; /* under the mutex */
  long seen;
} query;

static void must(int code) {
  if (code == 0) return;
  fprintf(stderr, "%s\n", atoll_rt_message());
  exit(1);
}

static void add(void* context, uint64_t first, uint64_t last) {
  query* const q = context;
  long sum = 0;
  for (uint64_t i = first; i < last; ++i) sum += (long)i;
  must(atoll_rt_mutex_lock(q->mutex));
  q->total += sum;
  must(atoll_rt_mutex_unlock(q->mutex));
}

static void scan(void* context) {
  query* const q = context;
  must(atoll_rt_parallel_for(0, 1000001, 0, add, q));
  must(atoll_rt_event_set(q->ready));
}

static void read_total(void* context) {
  query* const q = context;
  must(atoll_rt_event_wait(q->ready, ATOLL_RT_FOREVER, 0)); /* the worker does something else */
  q->seen = q->total;
}

static void until_stopped(void* context) {
  (void)context;
  while (!atoll_rt_stopped()) atoll_rt_yield();
}

int main(void) {
  const atoll_rt_options options = {.size = sizeof options, .approach = "adaptive"};
  atoll_rt_runtime* runtime;
  must(atoll_rt_runtime_create(&options, &runtime));

  query q = {0};
  must(atoll_rt_event_create(&q.ready));
  must(atoll_rt_mutex_create(&q.mutex));

  atoll_rt_group* group;
  const atoll_rt_group_options few = {.size = sizeof few, .threads = 1};
  must(atoll_rt_group_create(runtime, &few, &group));
  atoll_rt_place on_group;
  must(atoll_rt_group_place(group, &on_group));

  atoll_rt_task* reader;
  must(atoll_rt_spawn(runtime, on_group, read_total, &q, &reader));
  must(atoll_rt_run(runtime, scan, &q));
  must(atoll_rt_join(&reader));
  must(atoll_rt_group_free(group));

  atoll_rt_task* endless;
  const atoll_rt_place anywhere = {ATOLL_RT_ANYWHERE, 0};
  must(atoll_rt_spawn(runtime, anywhere, until_stopped, NULL, &endless));
  must(atoll_rt_stop(endless));
  must(atoll_rt_join(&endless));
  if (atoll_rt_join(&endless) == 0) return 1; /* an error, as the message says */
  printf("%ld; a second join: %s\n", q.seen, atoll_rt_message());

  atoll_rt_mutex_free(q.mutex);
  atoll_rt_event_free(q.ready);
  must(atoll_rt_runtime_free(runtime));
  return q.seen == 500000500000 ? 0 : 1;
}
