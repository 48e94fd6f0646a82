# The programs that run in emulated guests. tests/vm/native.py builds them, in the release build.
foreach(name memory workers)
  add_executable(runtime-${name}-guest EXCLUDE_FROM_ALL runtime_${name}_guest.cpp)
  target_link_libraries(runtime-${name}-guest PRIVATE atoll-flags atoll-runtime)
  optimise(runtime-${name}-guest)
endforeach()
