# The scheduler's queues and its sleep: deque, parking, yield queue.
add_executable(
  runtime-queues-tests
  runtime_deque_test.cpp
  runtime_parking_test.cpp
  runtime_yield_queue_test.cpp
)
target_link_libraries(runtime-queues-tests PRIVATE atoll-flags atoll-runtime GTest::gtest_main)
optimise(runtime-queues-tests)
discover_tests(runtime-queues-tests)
