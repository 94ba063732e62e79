# The npm package: its tests in Node and, the same files, in Chromium; its types; the tools that run them there.
# They test what `make wasm` has staged, which is what `ebb serve` serves.
if(TARGET ebb_cli AND NOT CMAKE_C_FLAGS MATCHES "fsanitize")
    set(stage ${PROJECT_SOURCE_DIR}/build/wasm/web)
    set(missing "${stage} is not there, or not whole: make wasm builds it")

    # ebb_web_test(NAME COMMAND) runs a command line in the staged directory, with EBB in its environment.
    function(ebb_web_test name command)
        add_test(NAME web_${name}
            COMMAND sh -c "(test -e '${stage}/ebb-web/src/module.js' || ! echo '${missing}' >&2) && \
cd '${stage}' && ${command}")
        set_tests_properties(web_${name} PROPERTIES TIMEOUT ${EBB_TEST_TIMEOUT_S}
            ENVIRONMENT "EBB=$<TARGET_FILE:ebb_cli>")
    endfunction()

    ebb_web_test(node "node --test ebb-web/test/*.test.js")
    ebb_web_test(chromium "node tools/browser-tests.js --ebb \"$EBB\" --dir .")
    ebb_web_test(tools "node --test tools/test/*.test.js")
    ebb_web_test(types "tsc -p ebb-web/test-types")
    # The package as web developers meet it: in React, jsdom, Vitest and Jest, in tabs that are hidden, frozen and left.
    # npm brings these packages into the staged directory.
    ebb_web_test(npm "node examples/install.js")
    set_tests_properties(web_npm PROPERTIES FIXTURES_SETUP web_npm)
    foreach(name guide jsdom leave programs storm strict-mode tabs)
        ebb_web_test(example_${name} "node --test examples/test/${name}.test.js")
    endforeach()
    ebb_web_test(vitest "cd examples && npm run --silent vitest")
    ebb_web_test(jest "cd examples && npm run --silent jest")
    foreach(name example_jsdom example_programs example_strict-mode vitest jest)
        set_tests_properties(web_${name} PROPERTIES FIXTURES_REQUIRED web_npm)
    endforeach()
    # Bundles of Vite and webpack, which npm installs into build/npm when it is first asked to.
    add_test(NAME web_bundle COMMAND node --test web/bundle/test/bundle.test.js WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(web_bundle PROPERTIES TIMEOUT ${EBB_TEST_TIMEOUT_S}
        ENVIRONMENT "EBB=$<TARGET_FILE:ebb_cli>;EBB_WEB=${stage};EBB_NPM=${PROJECT_SOURCE_DIR}/build/npm")
    # Mistakes planted in the package and in the kernel: as many as fit in a time here, all of them and sixty that
    # nobody chose in the soak.
    set(mutate node web/mutate/run.js --ebb $<TARGET_FILE:ebb_cli> --dir ${stage} --fixtures fixtures/cancel)
    add_test(NAME web_mutate COMMAND node --test web/mutate/test/mutate.test.js WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    add_test(NAME web_mutants COMMAND ${mutate} --random 12 --seconds 25 WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    add_test(NAME web_mutants_soak COMMAND ${mutate} --random 60 WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(web_mutants PROPERTIES TIMEOUT ${EBB_TEST_TIMEOUT_S} PROCESSORS 2)
    set_tests_properties(web_mutants_soak PROPERTIES LABELS soak TIMEOUT 7200 PROCESSORS 2)
    # What takes real time in them must not wait for a processor.
    set_tests_properties(web_node web_chromium web_tools web_example_storm web_example_tabs PROPERTIES PROCESSORS 2)
endif()
