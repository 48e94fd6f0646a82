# The scheduler: forks, scopes, tasks, places, groups.
add_executable(
  runtime-scheduler-tests runtime_context_registers.S runtime_scheduler_test.cpp
  runtime_exhaustion_test.cpp runtime_moves_test.cpp runtime_task_ends_test.cpp
  runtime_yield_test.cpp
)
# It has an operator new of its own.
set_source_files_properties(
  runtime_exhaustion_test.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON
)
target_link_libraries(runtime-scheduler-tests PRIVATE atoll-flags atoll-runtime GTest::gtest_main)
optimise(runtime-scheduler-tests)
discover_tests(runtime-scheduler-tests)
