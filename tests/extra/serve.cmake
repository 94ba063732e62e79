# `ebb serve` as its clients meet it: curl, and ones that attack it.
if(TARGET ebb_cli)
    add_test(NAME serve
        COMMAND Python3::Interpreter tests/tools/test_serve.py $<TARGET_FILE:ebb_cli>
        WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(serve PROPERTIES TIMEOUT ${EBB_TEST_TIMEOUT_S})
endif()
