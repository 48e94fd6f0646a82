# Pages of processes and of the page cache, on the machine that runs the tests.
add_executable(inspect-tests inspect_page_cache_test.cpp inspect_pages_test.cpp)
target_link_libraries(inspect-tests PRIVATE atoll-flags atoll-inspect GTest::gtest_main)
discover_tests(inspect-tests)
