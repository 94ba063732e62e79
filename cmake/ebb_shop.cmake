# The shop, which `make run` starts: a program that `ebb serve` loads. It is not linked: the command has the library. Its
# page is in page.inc, with the style of the dashboard.
set(shop_dir ${PROJECT_SOURCE_DIR}/examples/shop)
set(shop_pages ${shop_dir}/page.html ${shop_dir}/page.css ${shop_dir}/page.js ${PROJECT_SOURCE_DIR}/web/dashboard/dashboard.css)
set(shop_types text/html text/css text/javascript text/css)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${shop_pages})
set(shop_bytes "")
set(shop_rows "")
foreach(page type IN ZIP_LISTS shop_pages shop_types)
    file(READ ${page} bytes HEX)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
    get_filename_component(name ${page} NAME)
    string(MAKE_C_IDENTIFIER ${name} identifier)
    string(APPEND shop_bytes "static const unsigned char ${identifier}[] = {${bytes}};\n")
    string(APPEND shop_rows "    {\"${name}\", \"${type}\", ${identifier}, sizeof ${identifier}},\n")
endforeach()
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/shop/page.inc @ONLY CONTENT
    "@shop_bytes@static const file files[] = {\n@shop_rows@};\n")

file(GLOB shop_sources CONFIGURE_DEPENDS ${shop_dir}/*.c)
add_library(example_shop MODULE EXCLUDE_FROM_ALL ${shop_sources})
ebb_warnings(example_shop)
target_include_directories(example_shop PRIVATE ${PROJECT_SOURCE_DIR}/include ${CMAKE_BINARY_DIR}/shop)
target_link_libraries(example_shop PRIVATE PkgConfig::JANSSON)
set_target_properties(example_shop PROPERTIES
    PREFIX ""
    OUTPUT_NAME shop
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/examples)
if(EBB_TESTS)
    set_target_properties(example_shop PROPERTIES EXCLUDE_FROM_ALL FALSE)
endif()
