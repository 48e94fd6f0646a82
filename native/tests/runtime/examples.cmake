# native/examples as a user has them: against an installed Atoll, found by find_package. Once, in the
# release build: a library with a sanitizer wants users with the same.
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  set(examples ${PROJECT_SOURCE_DIR}/native/examples)
  set(examples_build ${CMAKE_CURRENT_BINARY_DIR}/examples)
  add_test(
    NAME runtime_examples_build
    COMMAND
      env -i PATH=/usr/bin:/bin # nothing of ours in the environment
      ${CMAKE_COMMAND} -D ATOLL_BUILD=${CMAKE_BINARY_DIR} -D SOURCE=${examples} -D
      BUILD=${examples_build} -D GENERATOR=${CMAKE_GENERATOR} -D MAKE=${CMAKE_MAKE_PROGRAM} -D
      CC=${CMAKE_C_COMPILER} -D CXX=${CMAKE_CXX_COMPILER} -P
      ${CMAKE_CURRENT_LIST_DIR}/examples_build.cmake
  )
  set_tests_properties(runtime_examples_build PROPERTIES FIXTURES_SETUP examples TIMEOUT 900)
  add_test(
    NAME runtime_examples_plain
    COMMAND
      env -i PATH=/usr/bin:/bin
      PKG_CONFIG_PATH=${examples_build}-prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig
      ${CMAKE_CURRENT_LIST_DIR}/examples_plain.sh ${CMAKE_C_COMPILER} ${CMAKE_CXX_COMPILER}
      ${examples} ${CMAKE_CURRENT_LIST_DIR}/load_plugins.c
    WORKING_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}
  )
  set_tests_properties(
    runtime_examples_plain PROPERTIES FIXTURES_REQUIRED examples TIMEOUT 120
  )
  file(GLOB sources CONFIGURE_DEPENDS ${examples}/*.c ${examples}/*.cpp)
  foreach(source ${sources} shared_fork_join shared_faults shared_stoppable shared_c_tasks)
    get_filename_component(name ${source} NAME_WE)
    add_test(
      NAME runtime_example.${name}
      COMMAND ${examples_build}/${name}
      WORKING_DIRECTORY ${examples_build}
    )
    set_tests_properties(runtime_example.${name} PROPERTIES FIXTURES_REQUIRED examples TIMEOUT 120)
  endforeach()
endif()

# Once for each build: the sanitizer of this one, and another.
if(CMAKE_CXX_FLAGS MATCHES "fsanitize=address")
  set(sanitizers with_address_sanitizer -O0)
elseif(CMAKE_CXX_FLAGS MATCHES "fsanitize=thread")
  set(sanitizers with_thread_sanitizer -O0)
else()
  set(sanitizers without_sanitizer -fsanitize=thread)
endif()
add_test(
  NAME runtime_mixed_sanitizers
  COMMAND
    ${CMAKE_CURRENT_LIST_DIR}/mixed_sanitizers.sh ${CMAKE_CXX_COMPILER}
    ${PROJECT_SOURCE_DIR}/native/include $<TARGET_FILE:atoll-runtime>
    $<TARGET_FILE:atoll-topology> "${CMAKE_CXX_FLAGS} -O0" ${sanitizers}
  WORKING_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}
)
