// The sanitizer of this build, and the calls that announce switches between stacks to it. Without a
// sanitizer, none of this is in the program.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define ATL_RT_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ATL_RT_ASAN 1
#endif
#endif

#if defined(__SANITIZE_THREAD__)
#define ATL_RT_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define ATL_RT_TSAN 1
#endif
#endif

#if defined(ATL_RT_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(ATL_RT_TSAN)
#include <sanitizer/tsan_interface.h>
#endif
