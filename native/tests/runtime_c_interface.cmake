# The C interface, used from C99.
add_executable(runtime-c-interface-test runtime_c_interface_test.c)
set_target_properties(
  runtime-c-interface-test PROPERTIES C_STANDARD 99 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF
)
target_compile_options(runtime-c-interface-test PRIVATE -pedantic)
target_link_libraries(runtime-c-interface-test PRIVATE atoll-flags atoll-runtime)
# The library is C++ and so must the linker be.
set_target_properties(runtime-c-interface-test PROPERTIES LINKER_LANGUAGE CXX)
add_test(NAME runtime_c_interface COMMAND runtime-c-interface-test)
