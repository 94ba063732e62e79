# The files that serve/ has in memory, as C: assets.inc has an array of bytes for each.
set(EBB_ASSETS_DIR ${CMAKE_BINARY_DIR}/assets)

# ebb_asset(NAME FILE): `const unsigned char ebb__asset_NAME[]` with the bytes of FILE, which CMake watches.
function(ebb_asset name file)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    file(READ ${file} bytes HEX)
    string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
    file(APPEND ${EBB_ASSETS_DIR}/assets.tmp "const unsigned char ebb__asset_${name}[] = {\n${bytes}};\n")
endfunction()

file(WRITE ${EBB_ASSETS_DIR}/assets.tmp "")
ebb_asset(openapi ${PROJECT_SOURCE_DIR}/serve/openapi.json)
configure_file(${EBB_ASSETS_DIR}/assets.tmp ${EBB_ASSETS_DIR}/assets.inc COPYONLY)
set_source_files_properties(${PROJECT_SOURCE_DIR}/serve/assets.c PROPERTIES INCLUDE_DIRECTORIES ${EBB_ASSETS_DIR})
