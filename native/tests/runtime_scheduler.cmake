# The scheduler: forks, scopes, tasks, places, groups.
add_executable(runtime-scheduler-tests runtime_scheduler_test.cpp)
target_link_libraries(runtime-scheduler-tests PRIVATE atoll-flags atoll-runtime GTest::gtest_main)
gtest_discover_tests(runtime-scheduler-tests)
