/* Places, victim order and controller of Atoll's runtime for thread pools of other languages.
 *
 * Plain C99 over pure functions: no function here starts a thread or moves one. The C++ headers
 * explain the terms: runtime/places.hpp, mapping.hpp, victims.hpp, controller.hpp.
 *
 * Every function that can fail returns 0 on success, or EINVAL (the request is invalid), ERANGE (a
 * buffer is too small) or ENOMEM; atoll_rt_message() then describes the error in one line. Outputs
 * are written only on success, except for the count that comes with ERANGE. No exception leaves
 * the library. Several threads may read one object at the same time; only one thread at a time may
 * use an approach. Pointers must not be NULL unless a comment allows it. */
#ifndef ATOLL_RUNTIME_H
#define ATOLL_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ATOLL_RT_API __attribute__((visibility("default")))

/* The error of this thread's last failed call; empty before the first. Valid until the next one. */
ATOLL_RT_API const char* atoll_rt_message(void);

/* ---- Places ---------------------------------------------------------------------------------- */

typedef struct atoll_rt_places atoll_rt_places;

/* `json`: the output of `atoll topo --json`, `bytes` long. */
ATOLL_RT_API int atoll_rt_places_from_machine(const char* json, size_t bytes,
                                              atoll_rt_places** places);
/* This machine, restricted to the CPUs that the calling thread may run on. */
ATOLL_RT_API int atoll_rt_places_here(atoll_rt_places** places);
/* "package:2 node:2 chiplet:4 core:8 pu:2". PUs take `cpus` in turn; without any (NULL, 0) PUs
 * are numbered from 0. */
ATOLL_RT_API int atoll_rt_places_synthetic(const char* text, const int* cpus, size_t cpu_count,
                                           atoll_rt_places** places);
/* New places with the levels between chiplets from a profile, as `atoll measure` writes it. */
ATOLL_RT_API int atoll_rt_places_with_profile(const atoll_rt_places* from, const char* json,
                                              size_t bytes, atoll_rt_places** places);
/* New places: those of `from` that contain at least one of these CPUs. */
ATOLL_RT_API int atoll_rt_places_restrict_to_cpus(const atoll_rt_places* from, const int* cpus,
                                                  size_t cpu_count, atoll_rt_places** places);
/* NULL is allowed. */
ATOLL_RT_API void atoll_rt_places_free(atoll_rt_places* places);

typedef struct {
  int cores; /* 0 .. cores-1 in the order package, node, chiplet */
  int chiplets;
  int nodes;
  int packages;
} atoll_rt_counts;

ATOLL_RT_API int atoll_rt_places_counts(const atoll_rt_places* places, atoll_rt_counts* counts);

typedef struct {
  int chiplet;      /* 0 .. chiplets-1 */
  int node;         /* OS index of the NUMA node */
  int package;      /* 0 .. packages-1 */
  size_t cpu_count; /* number of CPUs that atoll_rt_core_cpus returns */
} atoll_rt_core;

ATOLL_RT_API int atoll_rt_core_at(const atoll_rt_places* places, int core, atoll_rt_core* found);
/* OS indices, sorted. Returns ERANGE and sets *count if `capacity` is too small for them. */
ATOLL_RT_API int atoll_rt_core_cpus(const atoll_rt_places* places, int core, int* cpus,
                                    size_t capacity, size_t* count);
/* 0 from a chiplet to itself; a larger level means a greater distance. */
ATOLL_RT_API int atoll_rt_chiplet_level(const atoll_rt_places* places, int from, int to,
                                        int* level);

/* ---- Mapping and victims --------------------------------------------------------------------- */

/* cores[rank], `threads` of them, on min(spread, threads) chiplets. */
ATOLL_RT_API int atoll_rt_spread_cores(const atoll_rt_places* places, int threads, int spread,
                                       int* cores);
/* The smallest spread whose chiplets have room for the threads. */
ATOLL_RT_API int atoll_rt_min_spread(const atoll_rt_places* places, int threads, int* spread);

enum {
  ATOLL_RT_CHIPLET = 0,   /* the thief's own chiplet */
  ATOLL_RT_NEAR = 1,      /* nearer ones of its node */
  ATOLL_RT_NODE = 2,      /* the farthest of its node */
  ATOLL_RT_ELSEWHERE = 3, /* another node */
};

typedef struct {
  int distance; /* ATOLL_RT_CHIPLET .. ATOLL_RT_ELSEWHERE */
  int begin;    /* victims[begin] .. victims[end - 1] are equally far from the thief */
  int end;
} atoll_rt_ring;

/* The workers that `thief` steals from, nearest ring first; core_of_worker[w] is the core of worker
 * w. `victims` and `rings` have room for workers - 1 each, and may be NULL where that is 0. */
ATOLL_RT_API int atoll_rt_victims(const atoll_rt_places* places, const int* core_of_worker,
                                  size_t workers, int thief, int* victims, atoll_rt_ring* rings,
                                  size_t* ring_count);

/* ---- Controller ------------------------------------------------------------------------------ */

typedef struct atoll_rt_approach atoll_rt_approach;

/* By name: "adaptive" and others, see docs/runtime-controller.md. Give each task group its own
 * object and its own `seed`: with the same seed, the trials of groups that run at the same time
 * keep step and disturb each other. */
ATOLL_RT_API int atoll_rt_approach_create(const char* name, uint64_t seed,
                                          atoll_rt_approach** approach);
/* NULL is allowed. */
ATOLL_RT_API void atoll_rt_approach_free(atoll_rt_approach* approach);

#define ATOLL_RT_UNKNOWN UINT64_MAX /* a count that this machine or pool does not provide */

typedef struct {
  uint64_t type; /* any id that does not change */
  double units;  /* how much was done, in a unit that is the same for all of the type */
  double busy_s; /* CPU time that it took, all workers together */
} atoll_rt_type_work;

/* One interval of one task group. Begin with atoll_rt_sample_init. */
typedef struct {
  double elapsed_s;
  int spread; /* chiplets in use throughout the interval */
  int min_spread;
  int max_spread;
  int threads;
  uint64_t fills_local_chiplet; /* cache lines by where they came from, or ATOLL_RT_UNKNOWN */
  uint64_t fills_remote_chiplet;
  uint64_t fills_remote_node;
  uint64_t fills_memory;
  double latency_local_chiplet_ns; /* how long such a fill takes */
  double latency_remote_chiplet_ns;
  double latency_remote_node_ns;
  double latency_memory_ns;
  uint64_t working_set_bytes;     /* or ATOLL_RT_UNKNOWN */
  uint64_t chiplet_l3_bytes;      /* 0: not known */
  const atoll_rt_type_work* work; /* one entry per type */
  size_t work_count;
} atoll_rt_sample;

/* Sets all counts to unknown, the spread to 1, and the latencies to those of controller.hpp. */
ATOLL_RT_API void atoll_rt_sample_init(atoll_rt_sample* sample);

/* Call it once an interval. Sets the spread to use from now on and, unless `reason` is NULL, writes
 * the reason: at most `reason_capacity` bytes, truncated if necessary, with a 0 at the end. */
ATOLL_RT_API int atoll_rt_approach_step(atoll_rt_approach* approach, const atoll_rt_sample* sample,
                                        int* spread, char* reason, size_t reason_capacity);

#ifdef __cplusplus
}
#endif

#endif
