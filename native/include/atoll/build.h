/* Which sanitizer this code is built with. A program and the library must have the same: a
 * sanitizer does not follow a task from one stack to another unless the library announces the
 * switch, so it would report errors that do not exist. Every file that includes this refers to a
 * symbol that only a library with the same sanitizer has, so that a mixture fails at link time. C
 * and C++. */
#ifndef ATOLL_BUILD_H
#define ATOLL_BUILD_H

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
#define ATL_RT_BUILT atoll_runtime_built_with_address_sanitizer
#elif defined(ATL_RT_TSAN)
#define ATL_RT_BUILT atoll_runtime_built_with_thread_sanitizer
#else
#define ATL_RT_BUILT atoll_runtime_built_without_sanitizer
#endif

#ifdef __cplusplus
extern "C" {
#endif
/* Retained, so that a linker that drops unused sections keeps the reference, too. */
#if defined(__has_attribute)
#if __has_attribute(retain)
#define ATL_RT_RETAIN , retain
#endif
#endif
#ifndef ATL_RT_RETAIN
#define ATL_RT_RETAIN
#endif
extern const char ATL_RT_BUILT __attribute__((visibility("default")));
static const char* const atl_rt_build_of_this_file __attribute__((used ATL_RT_RETAIN)) =
    &ATL_RT_BUILT;
#undef ATL_RT_RETAIN
#ifdef __cplusplus
}
#endif

#endif
