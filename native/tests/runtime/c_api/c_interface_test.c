/* atoll/runtime.h from a C99 program: every function, its answers and its refusals. Prints each
 * check that fails and ends with 1 if there was one. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "atoll/runtime.h"
#include "check.h"

static int failures = 0;

static const char machine[] =
    "{\"format\":\"atoll/machine\",\"version\":1,"
    "\"chiplets\":[],"
    "\"nodes\":[{\"os_index\":0,\"memory_bytes\":1,\"pus\":[0,1,2,3]}],"
    "\"cores\":[{\"pus\":[0,2],\"package\":0,\"node\":0},{\"pus\":[1,3],\"package\":0,\"node\":0}],"
    "\"allowed\":{\"pus\":[0,1,2]}}";

static const char profile[] =
    "{\"format\":\"atoll/profile\",\"version\":1,\"emulated\":false,"
    "\"inference\":{\"levels\":[{\"groups\":[[0,1,2,3]]},{\"groups\":[[0,1,2,3,4,5]]}]}}";

static int says(const char* words) { return strstr(atoll_rt_message(), words) != NULL; }

static void test_places(void) {
  atoll_rt_places* places = NULL;
  CHECK(strcmp(atoll_rt_message(), "") == 0);
  CHECK(atoll_rt_places_from_machine(machine, sizeof(machine) - 1, &places) == 0);
  atoll_rt_counts counts;
  CHECK(atoll_rt_places_counts(places, &counts) == 0);
  CHECK(counts.cores == 2 && counts.chiplets == 1 && counts.nodes == 1 && counts.packages == 1);
  atoll_rt_core core;
  CHECK(atoll_rt_core_at(places, 0, &core) == 0);
  CHECK(core.chiplet == 0 && core.node == 0 && core.package == 0 && core.cpu_count == 2);
  CHECK(atoll_rt_core_at(places, 2, &core) == EINVAL && says("there is no core 2"));
  CHECK(atoll_rt_core_at(places, -1, &core) == EINVAL);
  int cpus[2] = {-1, -1};
  size_t count = 0;
  CHECK(atoll_rt_core_cpus(places, 0, cpus, 1, &count) == ERANGE && count == 2 && cpus[0] == -1);
  CHECK(atoll_rt_core_cpus(places, 0, cpus, 2, &count) == 0);
  CHECK(count == 2 && cpus[0] == 0 && cpus[1] == 2);
  atoll_rt_places_free(places);

  places = NULL;
  CHECK(atoll_rt_places_from_machine(machine, 20, &places) == EINVAL && says("not JSON"));
  CHECK(places == NULL);
  atoll_rt_places_free(NULL);

  CHECK(atoll_rt_places_here(&places) == 0);
  CHECK(atoll_rt_places_counts(places, &counts) == 0 && counts.cores >= 1);
  atoll_rt_places_free(places);
}

static void test_synthetic_parts_and_levels(void) {
  const int real[2] = {4, 9};
  atoll_rt_places* places = NULL;
  CHECK(atoll_rt_places_synthetic("core:0", NULL, 0, &places) == EINVAL && says("column 6"));
  CHECK(atoll_rt_places_synthetic("core:3", real, 2, &places) == 0);
  int cpu = 0;
  size_t count = 0;
  CHECK(atoll_rt_core_cpus(places, 1, &cpu, 1, &count) == 0 && cpu == 9);
  CHECK(atoll_rt_core_cpus(places, 2, &cpu, 1, &count) == 0 && cpu == 4);
  atoll_rt_places_free(places);

  CHECK(atoll_rt_places_synthetic("chiplet:3 core:2", NULL, 0, &places) == 0);
  atoll_rt_places* measured = NULL;
  CHECK(atoll_rt_places_with_profile(places, profile, sizeof(profile) - 1, &measured) == 0);
  int level = 0;
  CHECK(atoll_rt_chiplet_level(measured, 0, 1, &level) == 0 && level == 1);
  CHECK(atoll_rt_chiplet_level(measured, 2, 1, &level) == 0 && level == 2);
  CHECK(atoll_rt_chiplet_level(measured, 0, 3, &level) == EINVAL && says("0 to 2"));
  CHECK(atoll_rt_places_with_profile(places, machine, sizeof(machine) - 1, &measured) == EINVAL);

  atoll_rt_places* part = NULL;
  const int left[2] = {1, 5};
  CHECK(atoll_rt_places_restrict_to_cpus(measured, left, 2, &part) == 0);
  atoll_rt_counts counts;
  CHECK(atoll_rt_places_counts(part, &counts) == 0 && counts.cores == 2 && counts.chiplets == 2);
  atoll_rt_places* none = NULL;
  CHECK(atoll_rt_places_restrict_to_cpus(measured, NULL, 0, &none) == EINVAL && none == NULL);
  atoll_rt_places_free(part);
  atoll_rt_places_free(measured);
  atoll_rt_places_free(places);
}

static void test_mapping_and_victims(void) {
  atoll_rt_places* places = NULL;
  CHECK(atoll_rt_places_synthetic("node:2 chiplet:2 core:2", NULL, 0, &places) == 0);
  int cores[4] = {-1, -1, -1, -1};
  CHECK(atoll_rt_spread_cores(places, 3, 2, cores) == 0);
  CHECK(cores[0] == 0 && cores[1] == 1 && cores[2] == 2 && cores[3] == -1);
  CHECK(atoll_rt_spread_cores(places, 3, 1, cores) == EINVAL && says("smallest spread"));
  int spread = 0;
  CHECK(atoll_rt_min_spread(places, 5, &spread) == 0 && spread == 3);
  CHECK(atoll_rt_min_spread(places, 9, &spread) == EINVAL && spread == 3);

  const int core_of_worker[4] = {7, 0, 2, 1};
  int victims[3] = {-1, -1, -1};
  atoll_rt_ring rings[3];
  size_t ring_count = 0;
  CHECK(atoll_rt_victims(places, core_of_worker, 4, 1, victims, rings, &ring_count) == 0);
  CHECK(ring_count == 3);
  CHECK(victims[0] == 3 && victims[1] == 2 && victims[2] == 0);
  CHECK(rings[0].distance == ATOLL_RT_CHIPLET && rings[0].begin == 0 && rings[0].end == 1);
  CHECK(rings[1].distance == ATOLL_RT_NODE && rings[1].begin == 1 && rings[1].end == 2);
  CHECK(rings[2].distance == ATOLL_RT_ELSEWHERE && rings[2].begin == 2 && rings[2].end == 3);
  CHECK(atoll_rt_victims(places, core_of_worker, 1, 0, NULL, NULL, &ring_count) == 0);
  CHECK(ring_count == 0);
  CHECK(atoll_rt_victims(places, core_of_worker, 4, 4, victims, rings, &ring_count) == EINVAL);
  atoll_rt_places_free(places);
}

static void test_controller(void) {
  atoll_rt_approach* approach = NULL;
  CHECK(atoll_rt_approach_create("no such", 1, &approach) == EINVAL && says("adaptive"));
  CHECK(atoll_rt_approach_create("static-distributed", 1, &approach) == 0);
  atoll_rt_sample sample;
  atoll_rt_sample_init(&sample);
  CHECK(sample.fills_memory == ATOLL_RT_UNKNOWN && sample.working_set_bytes == ATOLL_RT_UNKNOWN);
  CHECK(sample.latency_memory_ns > 0 && sample.work == NULL && sample.work_count == 0);
  sample.elapsed_s = 0.1;
  sample.min_spread = 1;
  sample.spread = 2;
  sample.max_spread = 5;
  int spread = 0;
  char reason[4];
  memset(reason, 'x', sizeof(reason));
  CHECK(atoll_rt_approach_step(approach, &sample, &spread, reason, sizeof(reason)) == 0);
  CHECK(spread == 5 && strlen(reason) == sizeof(reason) - 1);
  CHECK(atoll_rt_approach_step(approach, &sample, &spread, NULL, 0) == 0);
  atoll_rt_approach_free(approach);
  atoll_rt_approach_free(NULL);

  /* Counts reach the approach: algorithm 1 spreads at 300 fills from other chiplets. */
  CHECK(atoll_rt_approach_create("arcas-2025", 1, &approach) == 0);
  sample.elapsed_s = 1;
  sample.fills_remote_chiplet = 1000000;
  CHECK(atoll_rt_approach_step(approach, &sample, &spread, NULL, 0) == 0 && spread == 3);
  sample.fills_remote_chiplet = 0;
  CHECK(atoll_rt_approach_step(approach, &sample, &spread, NULL, 0) == 0 && spread == 1);
  atoll_rt_approach_free(approach);

  /* So does the work of types: more of it than the limits of a step is not an error. */
  atoll_rt_type_work work[2] = {{1, 100, 0.5}, {2, 10, 0.5}};
  sample.work = work;
  sample.work_count = 2;
  CHECK(atoll_rt_approach_create("switchback", 1, &approach) == 0);
  for (int interval = 0; interval < 50; ++interval) {
    CHECK(atoll_rt_approach_step(approach, &sample, &spread, NULL, 0) == 0);
    CHECK(spread >= 1 && spread <= 5);
    sample.spread = spread;
  }
  atoll_rt_approach_free(approach);
}

/* Whether two groups with these seeds, the same in all else, ever try different spreads. */
static int part_ways(uint64_t seed, uint64_t other_seed) {
  const uint64_t seeds[2] = {seed, other_seed};
  const atoll_rt_type_work work = {1, 100, 0.5};
  atoll_rt_approach* approaches[2] = {NULL, NULL};
  atoll_rt_sample samples[2];
  for (int group = 0; group < 2; ++group) {
    CHECK(atoll_rt_approach_create("switchback", seeds[group], &approaches[group]) == 0);
    atoll_rt_sample_init(&samples[group]);
    samples[group].elapsed_s = 0.1;
    samples[group].spread = 2;
    samples[group].max_spread = 5;
    samples[group].work = &work;
    samples[group].work_count = 1;
  }
  int differ = 0;
  for (int interval = 0; interval < 500; ++interval) {
    for (int group = 0; group < 2; ++group) {
      int spread = 0;
      CHECK(atoll_rt_approach_step(approaches[group], &samples[group], &spread, NULL, 0) == 0);
      samples[group].spread = spread;
    }
    differ = differ || samples[0].spread != samples[1].spread;
  }
  for (int group = 0; group < 2; ++group) atoll_rt_approach_free(approaches[group]);
  return differ;
}

static void test_seeds(void) {
  CHECK(part_ways(1, 2));
  CHECK(!part_ways(7, 7));
}

int main(void) {
  test_places();
  test_synthetic_parts_and_levels();
  test_mapping_and_victims();
  test_controller();
  test_seeds();
  if (failures == 0) printf("the C interface: all as it should be\n");
  return failures == 0 ? 0 : 1;
}
