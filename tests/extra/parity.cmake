# Every fixture natively, in Node and in Chromium, from the same files; and rules broken on purpose, to see each
# gate fail. What they run in Node and Chromium is what `make wasm` has staged.
set(web_stage ${PROJECT_SOURCE_DIR}/build/wasm/web)
set(parity_tests fixture gates run)
list(TRANSFORM parity_tests REPLACE "(.+)" "web/parity/test/\\1.test.js")

if(TARGET ebb_cli AND NOT CMAKE_C_FLAGS MATCHES "fsanitize")
    add_test(NAME parity
        COMMAND node web/parity/run.js --ebb $<TARGET_FILE:ebb_cli> --dir ${web_stage} --fixtures fixtures/cancel
            --artefacts ${CMAKE_BINARY_DIR}/parity-failures
        WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    add_test(NAME parity_gates COMMAND node --test ${parity_tests} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(parity_gates PROPERTIES ENVIRONMENT
        "EBB=$<TARGET_FILE:ebb_cli>;EBB_MUTANT=$<TARGET_FILE:ebb_mutant_cli>;EBB_WEB=${web_stage}")
    # What is recorded on the event loops of Node and Chromium replays natively: by the staged files, which are whole.
    add_test(NAME web_recorded COMMAND node --test ${web_stage}/parity/test/recorded.test.js)
    set_tests_properties(web_recorded PROPERTIES ENVIRONMENT "EBB=$<TARGET_FILE:ebb_cli>" PROCESSORS 2)
    set_tests_properties(parity parity_gates web_recorded PROPERTIES TIMEOUT ${EBB_TEST_TIMEOUT_S})
endif()
