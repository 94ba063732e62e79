# The files that serve/ has in memory, as C: assets.inc has their bytes and a table of them.
set(EBB_ASSETS_DIR ${CMAKE_BINARY_DIR}/assets)
set(ebb_assets_bytes "")
set(ebb_assets_rows "")

# ebb_asset(FILE TYPE): FILE is served as what it is called, with that content-type. CMake watches it.
macro(ebb_asset file type)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${file})
    file(READ ${PROJECT_SOURCE_DIR}/${file} bytes HEX)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
    get_filename_component(name ${file} NAME)
    string(MAKE_C_IDENTIFIER ${name} identifier)
    string(APPEND ebb_assets_bytes "static const unsigned char ${identifier}[] = {${bytes}};\n")
    string(APPEND ebb_assets_rows "    {\"${name}\", \"${type}\", ${identifier}, sizeof ${identifier}},\n")
endmacro()

ebb_asset(serve/openapi.json application/json)
ebb_asset(web/dashboard/index.html "text/html; charset=utf-8")
ebb_asset(web/dashboard/dashboard.css "text/css; charset=utf-8")
ebb_asset(web/dashboard/trace.css "text/css; charset=utf-8")
ebb_asset(web/dashboard/machines.css "text/css; charset=utf-8")
ebb_asset(web/playground/icon.svg image/svg+xml)
foreach(name
        dashboard/api
        dashboard/diagram
        dashboard/drains
        dashboard/instance
        dashboard/instances
        dashboard/keys
        dashboard/lanes
        dashboard/machines
        dashboard/main
        dashboard/model
        dashboard/overview
        dashboard/plots
        dashboard/rows
        dashboard/series
        dashboard/timeline
        dashboard/trace
        dashboard/trace_read
        dashboard/tree
        playground/element
        playground/tide)
    ebb_asset(web/${name}.js "text/javascript; charset=utf-8")
endforeach()
file(WRITE ${EBB_ASSETS_DIR}/assets.tmp
    "${ebb_assets_bytes}static const ebb__asset assets[] = {\n${ebb_assets_rows}};\n")
configure_file(${EBB_ASSETS_DIR}/assets.tmp ${EBB_ASSETS_DIR}/assets.inc COPYONLY)
set_source_files_properties(${PROJECT_SOURCE_DIR}/serve/assets.c PROPERTIES INCLUDE_DIRECTORIES ${EBB_ASSETS_DIR})
