# Installs the runtime into a folder of its own, then configures and builds the examples against it.
set(prefix ${BUILD}-prefix)
file(REMOVE_RECURSE ${prefix} ${BUILD})
foreach(
  step
  "--install;${ATOLL_BUILD};--prefix;${prefix};--component;runtime"
  "-S;${SOURCE};-B;${BUILD};-G;${GENERATOR};-DCMAKE_PREFIX_PATH=${prefix};-DCMAKE_MAKE_PROGRAM=${MAKE};-DCMAKE_C_COMPILER=${CC};-DCMAKE_CXX_COMPILER=${CXX}"
  "--build;${BUILD}"
)
  execute_process(COMMAND ${CMAKE_COMMAND} ${step} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
