# libebb.so beside libebb.a. While the major version is 0 a new minor version may change the interface, so both
# stand in the soname: libebb.so.0.2.
ebb_library(ebb_shared SHARED)
add_library(ebb::shared ALIAS ebb_shared)
set(soversion ${PROJECT_VERSION_MAJOR})
if(PROJECT_VERSION_MAJOR EQUAL 0)
    set(soversion ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
endif()
set(symbols ${PROJECT_SOURCE_DIR}/cmake/ebb.map)
set_target_properties(ebb_shared PROPERTIES
    OUTPUT_NAME ebb
    EXPORT_NAME shared
    VERSION ${PROJECT_VERSION}
    SOVERSION ${soversion}
    LINK_DEPENDS ${symbols})
# Nobody can replace a function of the library, so calls inside it need no detour through the linker's tables.
target_compile_options(ebb_shared PRIVATE -fno-semantic-interposition)
target_link_options(ebb_shared PRIVATE
    -Wl,--version-script=${symbols} -Wl,-Bsymbolic-functions -Wl,--no-undefined -Wl,-z,text)
