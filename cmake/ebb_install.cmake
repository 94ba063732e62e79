# libebb.a, libebb.so, the headers, the command, and the two ways to find them: pkg-config and CMake. The command
# has the static library inside, because it uses internal functions.
# Both are relocatable: the installed tree may be moved or unpacked anywhere.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/ebb)

install(TARGETS ebb EXPORT ebbTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET ebb_shared)
    install(TARGETS ebb_shared EXPORT ebbTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
install(DIRECTORY include/ebb DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
    FILES_MATCHING PATTERN "*.h" PATTERN "*.def")
if(TARGET ebb_cli)
    install(TARGETS ebb_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
    install(DIRECTORY fixtures DESTINATION ${CMAKE_INSTALL_DATADIR}/ebb FILES_MATCHING PATTERN "*.json")
endif()

install(EXPORT ebbTargets NAMESPACE ebb:: DESTINATION ${package_dir})
configure_package_config_file(cmake/ebbConfig.cmake.in
    ${PROJECT_BINARY_DIR}/ebbConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/ebbConfigVersion.cmake
    COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/ebbConfig.cmake ${PROJECT_BINARY_DIR}/ebbConfigVersion.cmake
    DESTINATION ${package_dir})

file(RELATIVE_PATH EBB_PC_TO_PREFIX
    ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" EBB_PC_TO_PREFIX "${EBB_PC_TO_PREFIX}")
configure_file(cmake/ebb.pc.in ${PROJECT_BINARY_DIR}/ebb.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/ebb.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
