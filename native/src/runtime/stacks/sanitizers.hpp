// The sanitizer of this build, and the calls that announce switches between stacks to it. Without a
// sanitizer, none of this is in the program.
#pragma once

#include "atoll/build.h"

#if defined(ATL_RT_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(ATL_RT_TSAN)
#include <sanitizer/tsan_interface.h>
#endif
