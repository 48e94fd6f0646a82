# Workers that run somebody else's tasks.
add_executable(runtime-lent-tests runtime_lent_test.cpp)
target_link_libraries(runtime-lent-tests PRIVATE atoll-flags atoll-runtime GTest::gtest_main)
optimise(runtime-lent-tests)
discover_tests(runtime-lent-tests PROPERTIES LABELS runtime)
