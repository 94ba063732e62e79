# Proves that the pure layers need no libc: they compile against a shim that declares seven
# string functions and assert, and link to a module that imports nothing.
ebb_glob_layers(sources ${EBB_PURE_LAYERS})
add_library(ebb_wasm OBJECT ${sources} web/shim/string.c)
ebb_warnings(ebb_wasm)
target_compile_options(ebb_wasm PRIVATE -nostdlibinc)
target_include_directories(ebb_wasm PRIVATE include ${PROJECT_SOURCE_DIR})
target_include_directories(ebb_wasm SYSTEM PRIVATE web/shim/include)

add_executable(ebb_wasm_module $<TARGET_OBJECTS:ebb_wasm>)
set_target_properties(ebb_wasm_module PROPERTIES
    LINKER_LANGUAGE C
    OUTPUT_NAME ebb
    SUFFIX .wasm)
target_link_options(ebb_wasm_module PRIVATE
    -Wl,--no-entry -Wl,--export-all -Wl,--no-gc-sections)
