# The scheduler: forks, scopes, tasks, places, groups.
add_executable(
  runtime-scheduler-tests runtime_context_registers.S runtime_scheduler_test.cpp
  runtime_exhaustion_test.cpp runtime_moves_test.cpp runtime_task_ends_test.cpp
  runtime_yield_test.cpp
)
target_link_libraries(runtime-scheduler-tests PRIVATE atoll-flags atoll-runtime GTest::gtest_main)
discover_tests(runtime-scheduler-tests)
