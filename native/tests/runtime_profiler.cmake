# The runtime's profiler, most of it without a runtime.
add_executable(
  runtime_profiler_test
  runtime_profiler_events_test.cpp
  runtime_profiler_formats_test.cpp
  runtime_profiler_test.cpp
  runtime_profiler_trace_test.cpp
)
target_compile_definitions(
  runtime_profiler_test PRIVATE ATOLL_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data"
)
target_include_directories(
  runtime_profiler_test PRIVATE ${PROJECT_SOURCE_DIR}/native/src/runtime/profiler
)
target_link_libraries(
  runtime_profiler_test PRIVATE atoll-flags atoll-runtime nlohmann_json::nlohmann_json
                                GTest::gtest_main
)
discover_tests(runtime_profiler_test PROPERTIES LABELS runtime)
