# atoll-probe's protocol, its parts, and the kernels ping, pipe and spin.
add_executable(
  probe-tests
  probe_memory_test.cpp
  probe_protocol_test.cpp
  probe_samples_test.cpp
  probe_threads_test.cpp
)
target_link_libraries(probe-tests PRIVATE atoll-flags atoll-probe-parts GTest::gtest_main)
discover_tests(probe-tests)
