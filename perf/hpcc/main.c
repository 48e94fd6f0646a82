/* hpcc-random-access MIB: updates a second of a table of so many MiB, in 1e9; 1 if it was wrong. */
#include <hpcc.h>

int main(int argc, char** argv) {
  HPCC_Params params = {.HPLMaxProcMem = argc > 1 ? 1.5 * atof(argv[1]) * 1048576 : 0};
  double gups = 0;
  int failure = 1;
  if (HPCC_RandomAccess(&params, 0, &gups, &failure) != 0 || failure != 0) return 1;
  printf("%.9f %" PRId64 "\n", gups, params.RandomAccess_N);
  return 0;
}
