# What places DuckDB's workers; with a real DuckDB it is tested from Python (tests/engines).
add_executable(
  duckdb-tests duckdb_callers_test.cpp duckdb_queries_test.cpp duckdb_steering_runs_test.cpp
  duckdb_steering_test.cpp
)
target_link_libraries(duckdb-tests PRIVATE atoll-flags atoll-duckdb GTest::gtest_main)
discover_tests(duckdb-tests)
