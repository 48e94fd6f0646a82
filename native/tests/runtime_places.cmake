# Places, mapping and victims of the runtime.
set(ATOLL_PLACES_SEEDS ${CMAKE_CURRENT_SOURCE_DIR}/runtime_places_seeds)

add_executable(
  runtime-places-tests
  runtime_mapping_test.cpp
  runtime_places_profile_test.cpp
  runtime_places_test.cpp
  runtime_victims_test.cpp
)
target_compile_definitions(
  runtime-places-tests PRIVATE ATOLL_GOLDEN="${ATOLL_GOLDEN}" ATOLL_SEEDS="${ATOLL_PLACES_SEEDS}"
)
target_link_libraries(
  runtime-places-tests
  PRIVATE atoll-flags atoll-runtime atoll-topology nlohmann_json::nlohmann_json GTest::gtest_main
)
discover_tests(runtime-places-tests)

# The topology's bounded driver with a target of its own; what its header says of libFuzzer holds.
add_executable(runtime_places_fuzz runtime_places_fuzz.cpp topology_fuzz_driver.cpp)
target_link_libraries(runtime_places_fuzz PRIVATE atoll-flags atoll-runtime)
add_test(NAME runtime_places_fuzz COMMAND runtime_places_fuzz 1000 ${ATOLL_PLACES_SEEDS})
set_tests_properties(runtime_places_fuzz PROPERTIES TIMEOUT 300)
