# `ebb trace` on files that a second implementation of the format writes.
if(TARGET ebb_cli)
    add_test(NAME trace_cli
        COMMAND Python3::Interpreter tests/tools/test_trace_cli.py $<TARGET_FILE:ebb_cli>
        WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(trace_cli PROPERTIES TIMEOUT ${EBB_TEST_TIMEOUT_S})
endif()
