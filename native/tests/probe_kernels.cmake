# atoll-probe's kernels over memory: pure loops, and whole requests of a few milliseconds.
add_executable(
  probe-kernel-tests
  probe_chase_test.cpp
  probe_churn_test.cpp
  probe_load_test.cpp
  probe_move_test.cpp
  probe_vector_test.cpp
)
target_link_libraries(probe-kernel-tests PRIVATE atoll-flags atoll-probe-parts GTest::gtest_main)
discover_tests(probe-kernel-tests PROPERTIES LABELS probe)
