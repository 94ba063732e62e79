# The pure layers as wasm modules that import nothing but the callbacks of web/wasm/abi.h:
#   ebb.wasm         what the npm package has
#   ebb-lab.wasm     the same with scripts, oracles, fingerprints and a bench, for parity and `make bench`
#   ebb-mutant.wasm  that one with a rule that can be broken, to see the gates fail
#   ebb-machine.wasm  the managed machines, with the functions of ebb/machine.h: what emitted code links with
set(layers ${EBB_PURE_LAYERS})
list(REMOVE_ITEM layers machine lang) # the page has no compiler yet; that it compiles is checked below
ebb_glob_layers(sources ${layers})

function(ebb_wasm target)
    add_executable(${target} web/shim/string.c ${ARGN})
    ebb_warnings(${target})
    target_compile_options(${target} PRIVATE -nostdlibinc -O2 -g0 -ffunction-sections -fdata-sections -mbulk-memory)
    target_include_directories(${target} PRIVATE include ${PROJECT_SOURCE_DIR})
    target_include_directories(${target} SYSTEM PRIVATE web/shim/include)
    set_target_properties(${target} PROPERTIES LINKER_LANGUAGE C SUFFIX .wasm)
    # --stack-first: an overflow leaves the memory, which traps
    target_link_options(${target} PRIVATE -Wl,--no-entry -Wl,--gc-sections -Wl,--strip-all -Wl,--stack-first -Wl,-z,stack-size=262144)
endfunction()

file(GLOB abi_sources CONFIGURE_DEPENDS web/wasm/*.c)
# Of lab/ what runs a script or a journal: these files are pure too.
file(GLOB lab_sources CONFIGURE_DEPENDS lab/lab.c lab/memory.c lab/chooser.c lab/script*.c lab/replay*.c web/lab/*.c web/bench/*.c)
ebb_wasm(ebb ${sources} ${abi_sources})
target_compile_definitions(ebb PRIVATE EBB__PAGE=1)
ebb_wasm(ebb-lab ${sources} ${abi_sources} ${lab_sources})
ebb_plant(${sources} ${abi_sources} ${lab_sources})
ebb_wasm(ebb-mutant ${ebb_planted_sources})
ebb_plant_target(ebb-mutant)
ebb_glob_layers(machine_sources machine)
ebb_wasm(ebb-machine ${sources} ${machine_sources} web/wasm/alloc.c web/machine/ring.c)
file(STRINGS include/ebb/machine.h declarations REGEX "^[a-z].*ebb_machines?_[a-z_]+\\(")
foreach(line IN LISTS declarations)
    string(REGEX REPLACE "^.*(ebb_machines?_[a-z_]+)\\(.*" "\\1" name "${line}")
    if(NOT line MATCHES "^(static|typedef)")
        target_link_options(ebb-machine PRIVATE -Wl,--export=${name})
    endif()
endforeach()

# The package and the pages, with the modules in place: what tests import and `ebb serve` serves.
set(stage ${CMAKE_BINARY_DIR}/web)
file(GLOB_RECURSE web_files CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/web
    web/index.html web/ebb-web/* web/tools/* web/parity/* web/playground/* web/examples/*)
set(staged)
foreach(file IN LISTS web_files)
    add_custom_command(OUTPUT ${stage}/${file}
        COMMAND ${CMAKE_COMMAND} -E copy ${PROJECT_SOURCE_DIR}/web/${file} ${stage}/${file}
        DEPENDS web/${file} VERBATIM)
    list(APPEND staged ${stage}/${file})
endforeach()
add_custom_command(OUTPUT ${stage}/ebb-web/src/module.js ${stage}/ebb-web/ebb.wasm
    COMMAND ${CMAKE_COMMAND} -E copy $<TARGET_FILE:ebb> ${stage}/ebb-web/ebb.wasm
    COMMAND chmod 644 ${stage}/ebb-web/ebb.wasm
    COMMAND ${CMAKE_COMMAND} -E copy ${PROJECT_SOURCE_DIR}/LICENSE ${stage}/ebb-web/LICENSE
    COMMAND ${CMAKE_COMMAND} -DWASM=$<TARGET_FILE:ebb> -DOUT=${stage}/ebb-web/src/module.js
        -P ${CMAKE_CURRENT_LIST_DIR}/ebb_web_module.cmake
    DEPENDS ebb ${CMAKE_CURRENT_LIST_DIR}/ebb_web_module.cmake VERBATIM)
foreach(module ebb-lab ebb-mutant)
    add_custom_command(OUTPUT ${stage}/parity/${module}.wasm
        COMMAND ${CMAKE_COMMAND} -E copy $<TARGET_FILE:${module}> ${stage}/parity/${module}.wasm
        DEPENDS ${module} VERBATIM)
    list(APPEND staged ${stage}/parity/${module}.wasm)
endforeach()
add_custom_target(stage ALL DEPENDS ${staged} ${stage}/ebb-web/src/module.js)

# The compiler of .ebb files has no module yet. It is compiled, so that it stays free of libc.
ebb_glob_layers(lang_sources lang)
add_library(ebb-lang OBJECT ${lang_sources})
ebb_warnings(ebb-lang)
target_compile_options(ebb-lang PRIVATE -nostdlibinc -O2 -mbulk-memory)
target_include_directories(ebb-lang PRIVATE include ${PROJECT_SOURCE_DIR})
target_include_directories(ebb-lang SYSTEM PRIVATE web/shim/include)
