# What find_package(atoll) and pkg-config of other projects find: the runtime's headers, its library,
# static and shared, the topology library behind it, and package descriptions. `cmake --install BUILD
# --component runtime` puts these there and nothing else.
include(CMakePackageConfigHelpers)

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/atoll)

set_target_properties(atoll-runtime PROPERTIES EXPORT_NAME runtime)
set_target_properties(atoll-runtime-shared PROPERTIES EXPORT_NAME runtime-shared)
set_target_properties(atoll-topology PROPERTIES EXPORT_NAME topology)
install(
  TARGETS atoll-runtime atoll-runtime-shared
  EXPORT atoll
  ARCHIVE COMPONENT runtime
  LIBRARY COMPONENT runtime NAMELINK_COMPONENT runtime
)
install(
  DIRECTORY ${PROJECT_SOURCE_DIR}/native/include/atoll
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  COMPONENT runtime
)

install(
  EXPORT atoll
  NAMESPACE atoll::
  FILE atollTargets.cmake
  DESTINATION ${package_folder}
  COMPONENT runtime
)
configure_package_config_file(
  ${CMAKE_CURRENT_LIST_DIR}/atollConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/atollConfig.cmake
  INSTALL_DESTINATION ${package_folder}
)
# Before 1.0 a minor version may change what programs are written against.
write_basic_package_version_file(
  ${CMAKE_CURRENT_BINARY_DIR}/atollConfigVersion.cmake COMPATIBILITY SameMinorVersion
)
install(
  FILES ${CMAKE_CURRENT_BINARY_DIR}/atollConfig.cmake
        ${CMAKE_CURRENT_BINARY_DIR}/atollConfigVersion.cmake
  DESTINATION ${package_folder}
  COMPONENT runtime
)

# The same for projects without CMake.
file(RELATIVE_PATH to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" to_prefix "${to_prefix}")
if(ATOLL_CONTEXT STREQUAL boost)
  set(context_libraries "-lboost_context ")
endif()
# The static library by its file's name: the linker would take the shared one.
set(pc_atoll "-l:${CMAKE_STATIC_LIBRARY_PREFIX}atoll-runtime${CMAKE_STATIC_LIBRARY_SUFFIX} \
-latoll-topology ${context_libraries}-lstdc++ -lm")
set(pc_atoll-shared -latoll-runtime)
foreach(package atoll atoll-shared)
  set(pc_libraries ${pc_${package}})
  configure_file(
    ${CMAKE_CURRENT_LIST_DIR}/atoll.pc.in ${CMAKE_CURRENT_BINARY_DIR}/${package}.pc @ONLY
  )
  install(
    FILES ${CMAKE_CURRENT_BINARY_DIR}/${package}.pc
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
    COMPONENT runtime
  )
endforeach()
