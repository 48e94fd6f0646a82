# What stands on the scheduler: waiting, time, blocking sections, task-locals, loops, coroutines.
add_executable(
  runtime-api-tests
  runtime_blocking_test.cpp
  runtime_coroutine_test.cpp
  runtime_parallel_test.cpp
  runtime_sync_lifetime_test.cpp
  runtime_sync_test.cpp
  runtime_task_local_test.cpp
  runtime_time_test.cpp
)
target_link_libraries(runtime-api-tests PRIVATE atoll-flags atoll-runtime GTest::gtest_main)
# gcc 12 with AddressSanitizer takes std::stop_source's constructor for a use of what it makes.
target_compile_options(runtime-api-tests PRIVATE -Wno-maybe-uninitialized)
optimise(runtime-api-tests)
discover_tests(runtime-api-tests)
