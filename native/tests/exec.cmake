# atoll-exec's parts. Places are compared with hwloc-calc, which must be installed.
find_program(HWLOC_CALC hwloc-calc REQUIRED)

add_executable(
  exec-tests
  exec_allocator_test.cpp
  exec_cpu_set_test.cpp
  exec_options_test.cpp
  exec_place_topology_test.cpp
  exec_places_hwloc_test.cpp
  exec_places_test.cpp
)
target_compile_definitions(exec-tests PRIVATE "HWLOC_CALC=\"${HWLOC_CALC}\"")
target_link_libraries(exec-tests PRIVATE atoll-flags atoll-exec-parts atoll-topology GTest::gtest_main)
discover_tests(exec-tests)
