// What the sources of stacks need of the rest of the runtime, for programs without it.
#include "atoll/build.h"
#include "scheduler/process.hpp"

extern "C" const char ATL_RT_BUILT = 0;

namespace atl::runtime {

void hold_over_fork(std::mutex&) {}  // these programs do not fork with the lock taken

}  // namespace atl::runtime
