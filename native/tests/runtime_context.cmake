# Contexts, fibers, stacks, overflows; the same switch tests for aarch64 where the tools are there.
enable_language(ASM)  # the tests of registers; where the library enables it is another folder
add_executable(
  runtime-context-tests
  runtime_context_registers.S
  runtime_context_test.cpp
  runtime_fiber_test.cpp
  runtime_gdb_test.cpp
  runtime_overflow_test.cpp
  runtime_stack_test.cpp
)
target_link_libraries(runtime-context-tests PRIVATE atoll-flags atoll-runtime GTest::gtest_main)
if(ATOLL_CONTEXT STREQUAL boost)
  target_compile_definitions(runtime-context-tests PRIVATE ATOLL_CONTEXT_BOOST)
endif()
# gdb reads a fiber's fields in it.
set_source_files_properties(runtime_gdb_test.cpp PROPERTIES COMPILE_OPTIONS -g)
optimise(runtime-context-tests)
discover_tests(runtime-context-tests PROPERTIES LABELS runtime)

# What is built once more, for another switch or another processor.
set(runtime_source ${PROJECT_SOURCE_DIR}/native/src/runtime)
set(fiber_sources
    ${runtime_source}/fiber.cpp
    ${runtime_source}/page_size.cpp
    ${runtime_source}/stack.cpp
    ${runtime_source}/stack_chunk.cpp
    ${runtime_source}/stack_guard.cpp
    ${CMAKE_CURRENT_SOURCE_DIR}/runtime_context_registers.S
    ${CMAKE_CURRENT_SOURCE_DIR}/runtime_context_test.cpp
    ${CMAKE_CURRENT_SOURCE_DIR}/runtime_fiber_test.cpp
)

# The portable fallback, in the same tests. Package: libboost-context-dev.
find_package(Boost 1.71 QUIET CONFIG COMPONENTS context)
if(Boost_FOUND)
  add_executable(runtime-context-boost-tests ${fiber_sources} ${runtime_source}/context_boost.cpp)
  target_compile_definitions(runtime-context-boost-tests PRIVATE ATOLL_CONTEXT_BOOST)
  target_include_directories(
    runtime-context-boost-tests PRIVATE ${runtime_source} ${PROJECT_SOURCE_DIR}/native/include
  )
  target_link_libraries(
    runtime-context-boost-tests PRIVATE atoll-flags Boost::context GTest::gtest_main
  )
  optimise(runtime-context-boost-tests)
  discover_tests(
    runtime-context-boost-tests TEST_PREFIX boost. PROPERTIES LABELS runtime
  )
else()
  message(STATUS "Boost.Context: not tested here (libboost-context-dev)")
endif()

# aarch64 under qemu-user. Packages: g++-aarch64-linux-gnu, qemu-user, googletest (its sources:
# there is no compiled one for another architecture).
find_program(ATOLL_AARCH64_CXX aarch64-linux-gnu-g++)
find_program(ATOLL_QEMU_AARCH64 qemu-aarch64)
find_path(ATOLL_GTEST_SOURCE src/gtest-all.cc PATHS /usr/src/googletest/googletest)
if(CMAKE_CXX_FLAGS MATCHES sanitize
   OR NOT ATOLL_AARCH64_CXX
   OR NOT ATOLL_QEMU_AARCH64
   OR NOT ATOLL_GTEST_SOURCE
)
  message(STATUS "aarch64 under qemu-user: not tested here (packages, or a sanitizer build)")
  return()
endif()

set(aarch64_flags -std=c++20 -O2 -g -pthread -I${ATOLL_GTEST_SOURCE}
                  -I${ATOLL_GTEST_SOURCE}/include
)
set(aarch64_gtest ${CMAKE_CURRENT_BINARY_DIR}/aarch64_gtest.o)
add_custom_command(
  OUTPUT ${aarch64_gtest}
  COMMAND ${ATOLL_AARCH64_CXX} ${aarch64_flags} -c ${ATOLL_GTEST_SOURCE}/src/gtest-all.cc -o
          ${aarch64_gtest}
  COMMENT "GoogleTest for aarch64"
  VERBATIM
)

set(aarch64_sources ${fiber_sources} ${runtime_source}/context_aarch64.S)
file(GLOB runtime_headers CONFIGURE_DEPENDS ${runtime_source}/*.hpp)
add_custom_command(
  OUTPUT runtime-context-aarch64
  COMMAND
    ${ATOLL_AARCH64_CXX} ${aarch64_flags} -Wall -Wextra -Wconversion -Werror
    -I${runtime_source} -I${PROJECT_SOURCE_DIR}/native/include ${aarch64_sources}
    ${ATOLL_GTEST_SOURCE}/src/gtest_main.cc ${aarch64_gtest} -o
    ${CMAKE_CURRENT_BINARY_DIR}/runtime-context-aarch64
  DEPENDS ${aarch64_sources} ${aarch64_gtest} ${runtime_headers}
          ${CMAKE_CURRENT_SOURCE_DIR}/runtime_fiber_parts.hpp
  COMMENT "Switch tests for aarch64"
  VERBATIM
)
add_custom_target(
  runtime-context-aarch64-tests ALL DEPENDS ${CMAKE_CURRENT_BINARY_DIR}/runtime-context-aarch64
)
add_test(NAME "runtime_context (aarch64 under qemu-user)"
         COMMAND ${ATOLL_QEMU_AARCH64} -L /usr/aarch64-linux-gnu
                 ${CMAKE_CURRENT_BINARY_DIR}/runtime-context-aarch64
)
set_tests_properties("runtime_context (aarch64 under qemu-user)" PROPERTIES LABELS "runtime")
