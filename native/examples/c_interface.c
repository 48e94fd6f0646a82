/* Places, mapping, victims and controller from C, for a thread pool in another language. */
#include <atoll/runtime.h>
#include <stdio.h>

int main(void) {
  atoll_rt_places* places;
  if (atoll_rt_places_synthetic("node:2 chiplet:2 core:4", NULL, 0, &places) != 0) {
    fprintf(stderr, "%s\n", atoll_rt_message());
    return 1;
  }
  int cores[6]; /* six threads on two chiplets */
  atoll_rt_spread_cores(places, 6, 2, cores);

  int victims[5];
  atoll_rt_ring rings[5];
  size_t ring_count;
  atoll_rt_victims(places, cores, 6, 0, victims, rings, &ring_count);
  printf("thread 0 sits on core %d and steals from thread %d first\n", cores[0], victims[0]);

  atoll_rt_approach* approach;
  atoll_rt_approach_create("location-centric", 1, &approach);
  atoll_rt_sample sample;
  atoll_rt_sample_init(&sample);
  sample.elapsed_s = 0.1;
  sample.spread = 2;
  sample.min_spread = 2;
  sample.max_spread = 4;
  sample.threads = 6;
  int spread;
  char reason[200];
  atoll_rt_approach_step(approach, &sample, &spread, reason, sizeof reason);
  printf("spread %d: %s\n", spread, reason);

  atoll_rt_approach_free(approach);
  atoll_rt_places_free(places);
  return ring_count == 2 && spread == 2 ? 0 : 1;
}
