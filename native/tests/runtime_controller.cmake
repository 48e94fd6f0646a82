# The controller's approaches, alone and on a simulated machine, and the simulation as CSV.
add_library(
  runtime-simulation STATIC
  runtime_simulation.cpp
)
target_link_libraries(runtime-simulation PRIVATE atoll-flags PUBLIC atoll-runtime)
optimise(runtime-simulation)

add_executable(
  runtime-controller-tests
  runtime_controller_adaptive_test.cpp
  runtime_controller_switchback_test.cpp
  runtime_controller_test.cpp
)
target_link_libraries(runtime-controller-tests PRIVATE atoll-flags runtime-simulation
                                                       GTest::gtest_main)
optimise(runtime-controller-tests)
discover_tests(runtime-controller-tests)

add_executable(runtime_simulation runtime_simulation_main.cpp)
target_link_libraries(runtime_simulation PRIVATE atoll-flags runtime-simulation)
