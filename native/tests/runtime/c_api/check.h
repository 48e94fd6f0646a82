/* What the programs in C share. Each has `failures`, which its main looks at. */
#pragma once

#include <stdio.h>

#define CHECK(condition)                                                                       \
  do {                                                                                         \
    if (!(condition)) {                                                                        \
      fprintf(stderr, "line %d: %s; message: %s\n", __LINE__, #condition, atoll_rt_message()); \
      ++failures;                                                                              \
    }                                                                                          \
  } while (0)
