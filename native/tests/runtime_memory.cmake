# Placed memory: against a kernel of four nodes that is made up, and on this machine.
add_executable(
  runtime-memory-tests
  runtime_memory_partition_test.cpp
  runtime_memory_policy_test.cpp
  runtime_memory_test.cpp
)
target_include_directories(runtime-memory-tests PRIVATE ${PROJECT_SOURCE_DIR}/native/src/runtime)
target_link_libraries(
  runtime-memory-tests PRIVATE atoll-flags atoll-runtime GTest::gtest_main
)
discover_tests(runtime-memory-tests)
