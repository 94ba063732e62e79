# The npm package: its tests in Node and, the same files, in Chromium; its types; the tools that run them there; the
# pages. They test what `make wasm` has staged, which is what `ebb files` serves. None runs C that a sanitizer sees.
if(EBB_SANITIZED)
    return()
endif()
set(stage ${PROJECT_SOURCE_DIR}/build/wasm/web)
set(missing "${stage} is not there, or not whole: make wasm builds it")
set(web_environment "EBB=$<TARGET_FILE:ebb_cli>" "EBB_MUTANT=$<TARGET_FILE:ebb_mutant_cli>" "EBB_WEB=${stage}"
    "EBB_NPM=${PROJECT_SOURCE_DIR}/build/npm")

# ebb_web(NAME COMMAND) runs a command line in the staged directory.
function(ebb_web name command)
    ebb_run(web.${name} sh -c "(test -e '${stage}/ebb-web/src/module.js' || ! echo '${missing}' >&2) && \
cd '${stage}' && ${command}")
    set_tests_properties(web.${name} PROPERTIES ENVIRONMENT "${web_environment}")
endfunction()

# ebb_web_tree(NAME COMMAND...) runs one in the root of the tree.
function(ebb_web_tree name)
    ebb_run(web.${name} ${ARGN})
    set_tests_properties(web.${name} PROPERTIES ENVIRONMENT "${web_environment}")
endfunction()

# The files that compare real times, or have time limits of a second or so, run alone as NAME_clock.
function(ebb_web_files out out_clock folder)
    file(GLOB files CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/web ${PROJECT_SOURCE_DIR}/web/${folder}/*.test.js)
    set(of_clock ${files})
    list(FILTER of_clock INCLUDE REGEX "(force|starvation|timeouts|browser-tests|chromium|start)\\.test\\.js$")
    list(REMOVE_ITEM files ${of_clock})
    list(JOIN files " " files)
    list(JOIN of_clock " " of_clock)
    set(${out} ${files} PARENT_SCOPE)
    set(${out_clock} ${of_clock} PARENT_SCOPE)
endfunction()
ebb_web_files(package package_clock ebb-web/test)
ebb_web_files(tools tools_clock tools/test)
foreach(of "" _clock)
    ebb_web(node${of} "node --test ${package${of}}")
    ebb_web(chromium${of} "node tools/browser-tests.js --ebb \"$EBB\" --dir . ${package${of}}")
    ebb_web(tools${of} "node --test ${tools${of}}")
endforeach()
ebb_web_tree(machine node --test web/machine/machine.test.js)
ebb_web(types "tsc -p ebb-web/test-types")
# The package as web developers meet it: in React, jsdom, Vitest and Jest, in tabs that are hidden, frozen and left.
# npm brings these packages into the staged directory.
ebb_web(npm "node examples/install.js")
set_tests_properties(web.npm PROPERTIES FIXTURES_SETUP web_npm)
foreach(name guide jsdom leave programs storm strict-mode tabs)
    ebb_web(example_${name} "node --test examples/test/${name}.test.js")
endforeach()
ebb_web(vitest "cd examples && npm run --silent vitest")
ebb_web(jest "cd examples && npm run --silent jest")
foreach(name example_jsdom example_programs example_strict-mode vitest jest)
    set_tests_properties(web.${name} PROPERTIES FIXTURES_REQUIRED web_npm)
endforeach()
# Bundles of Vite and webpack, which npm installs into build/npm when it is first asked to.
ebb_web_tree(bundle node --test web/bundle/test/bundle.test.js)

# Every fixture natively, in Node and in Chromium, from the same files; and rules broken on purpose, to see each gate
# fail.
set(parity_tests fixture gates run)
list(TRANSFORM parity_tests REPLACE "(.+)" "web/parity/test/\\1.test.js")
ebb_web_tree(parity node web/parity/run.js --ebb $<TARGET_FILE:ebb_cli> --dir ${stage} --fixtures fixtures/cancel
    --artefacts ${CMAKE_BINARY_DIR}/parity-failures)
ebb_web_tree(parity_gates node --test ${parity_tests})
# What is recorded on the event loops of Node and Chromium replays natively: by the staged files, which are whole.
ebb_web(recorded "node --test parity/test/recorded.test.js")

# The interactive page, in Chromium, served by `ebb files`.
ebb_web_tree(playground node --test web/playground/test/page.test.js)
# Its source, edited with real keys, and axe, which npm installs into build/npm when it is first asked to.
ebb_web_tree(playground_source node --test web/playground/test/source.test.js)

# The dashboard, in Chromium, served by `ebb serve` with a program and a store; its tree, by a service of tests/serve.
ebb_web_tree(dashboard node --test web/dashboard/test/dashboard.test.js)
ebb_web_tree(dashboard_tree node --test web/dashboard/test/tree.test.js)
ebb_web_tree(dashboard_series node --test web/dashboard/test/series.test.js)
ebb_web_tree(dashboard_frames node --test web/dashboard/test/frames.test.js)
ebb_web_tree(dashboard_access node --test web/dashboard/test/access.test.js)
set_property(TEST web.dashboard web.dashboard_tree web.dashboard_frames web.dashboard_access APPEND PROPERTY ENVIRONMENT
    "EBB_APP=$<TARGET_FILE:example_durable_app>" "EBB_HARBOUR=$<TARGET_FILE:harbour>")
ebb_web_tree(dashboard_trace node --test web/dashboard/test/trace.test.js)
set_property(TEST web.dashboard_trace APPEND PROPERTY ENVIRONMENT "EBB_APP=$<TARGET_FILE:example_durable_app>")
# Its machines, with a program of typestate machines.
ebb_web_tree(dashboard_machines node --test web/dashboard/test/machines.test.js)

# Mistakes planted in the package and in the kernel: as many as fit in a time here, all of them and sixty that nobody
# chose in the soak.
set(mutate node web/mutate/run.js --ebb $<TARGET_FILE:ebb_cli> --dir ${stage} --fixtures fixtures/cancel)
ebb_web_tree(mutate node --test web/mutate/test/mutate.test.js)
ebb_web_tree(mutants ${mutate} --random 12 --seconds 25)
ebb_web_tree(mutants.soak ${mutate} --random 60)
ebb_soak(web.mutants.soak)

# The first of these installs packages into build/npm, which the others then find.
set_tests_properties(web.bundle web.playground web.playground_source web.dashboard_access PROPERTIES RESOURCE_LOCK build_npm)
# What takes real time in them must not wait for a processor. The mutants take all that they are given.
ebb_clock(web.node_clock web.chromium_clock web.tools_clock web.example_storm web.example_tabs)
set_tests_properties(web.recorded web.mutants.soak PROPERTIES RUN_SERIAL TRUE)
set_tests_properties(web.mutants PROPERTIES PROCESSORS 2)
# Others wait for what it installs.
set_tests_properties(web.npm PROPERTIES COST 60)
set_tests_properties(web.mutants web.bundle web.node web.chromium PROPERTIES COST 30)
