# The interactive page, in Chromium, served by `ebb serve` from what `make wasm` has staged.
if(TARGET ebb_cli AND NOT CMAKE_C_FLAGS MATCHES "fsanitize")
    add_test(NAME playground COMMAND node --test web/playground/test/page.test.js WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    # Its source, edited with real keys, and axe, which npm installs into build/npm when it is first asked to.
    add_test(NAME playground_source COMMAND node --test web/playground/test/source.test.js WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(playground playground_source PROPERTIES TIMEOUT ${EBB_TEST_TIMEOUT_S}
        ENVIRONMENT "EBB=$<TARGET_FILE:ebb_cli>;EBB_WEB=${PROJECT_SOURCE_DIR}/build/wasm/web")
endif()
