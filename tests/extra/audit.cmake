# `ebb audit` on logs of real workflows, as they are and doctored.
if(TARGET ebb_cli)
    add_test(NAME audit_cli
        COMMAND Python3::Interpreter tests/tools/test_audit_cli.py $<TARGET_FILE:ebb_cli> $<TARGET_FILE:test_audit>
        WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(audit_cli PROPERTIES TIMEOUT ${EBB_TEST_TIMEOUT_S})
endif()
