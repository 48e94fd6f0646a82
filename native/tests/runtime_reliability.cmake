# fork(), masks, static lifetime, everything at once, link-time optimisation.
add_executable(runtime-reliability-tests runtime_reliability_test.cpp)
target_link_libraries(runtime-reliability-tests PRIVATE atoll-flags atoll-runtime GTest::gtest_main)
optimise(runtime-reliability-tests)
discover_tests(runtime-reliability-tests)

add_executable(runtime-static runtime_static.cpp)
target_link_libraries(runtime-static PRIVATE atoll-flags atoll-runtime)
optimise(runtime-static)
add_test(NAME runtime_static COMMAND runtime-static)
set_tests_properties(runtime_static PROPERTIES PASS_REGULAR_EXPRESSION "destroyed in order")

add_executable(runtime-stress runtime_stress.cpp)
target_link_libraries(runtime-stress PRIVATE atoll-flags atoll-runtime)
optimise(runtime-stress)
add_test(NAME runtime_stress COMMAND runtime-stress 5)
set_tests_properties(runtime_stress PROPERTIES TIMEOUT 300)

# Under link-time optimisation a compiler sees through every call, and could keep the address of a
# thread-local across a switch between threads. Once, in the release build.
if(CMAKE_BUILD_TYPE STREQUAL "RelWithDebInfo")
  get_target_property(sources atoll-runtime SOURCES)
  list(TRANSFORM sources PREPEND ${PROJECT_SOURCE_DIR}/native/src/runtime/)
  add_executable(
    runtime-lto-tests runtime_context_registers.S runtime_reliability_test.cpp
    runtime_scheduler_test.cpp runtime_task_ends_test.cpp runtime_yield_test.cpp ${sources}
  )
  target_include_directories(
    runtime-lto-tests PRIVATE ${PROJECT_SOURCE_DIR}/native/include
                              ${PROJECT_SOURCE_DIR}/native/src/runtime
  )
  target_compile_options(runtime-lto-tests PRIVATE -flto=auto -O3)
  target_link_options(runtime-lto-tests PRIVATE -flto=auto -O3)
  target_link_libraries(
    runtime-lto-tests PRIVATE atoll-flags atoll-topology nlohmann_json::nlohmann_json
                              Threads::Threads GTest::gtest_main
  )
  discover_tests(runtime-lto-tests TEST_PREFIX lto.)
endif()
