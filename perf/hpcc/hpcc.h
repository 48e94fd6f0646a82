/* What RandomAccess of the HPC Challenge wants of its suite, for perf.workloads_peers. */
#ifndef ATOLL_HPCC_H
#define ATOLL_HPCC_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef uint64_t u64Int;
typedef int64_t s64Int;
typedef int MPI_Datatype, MPI_Request, MPI_Status, MPI_Comm;
typedef struct {
  double HPLMaxProcMem; /* bytes, of which the table is the largest half that is a power of two */
  char outFname[256];
  s64Int RandomAccess_N;
} HPCC_Params;

#define LONG_IS_64BITS 1
#define FSTR64 "%" PRId64
#define HPCC_XMALLOC(type, count) ((type*)malloc((count) * sizeof(type)))
#define HPCC_free free

static inline double atoll_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
#define HPL_timer_cputime atoll_seconds
#define MPI_Wtime atoll_seconds

int HPCC_RandomAccess(HPCC_Params* params, int doIO, double* GUPs, int* failure);

#endif
