# The fixtures of the contract, broken copies of them, and bugs that they must find.
if(TARGET ebb_cli)
    add_test(NAME fixtures COMMAND ebb_cli fixture run WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    add_test(NAME fixtures_report
        COMMAND Python3::Interpreter tests/tools/test_fixtures.py $<TARGET_FILE:ebb_cli> $<TARGET_FILE:ebb_mutant_cli>
        WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(fixtures fixtures_report PROPERTIES TIMEOUT ${EBB_TEST_TIMEOUT_S})
endif()
ebb_check(contract tests/tools/check_contract.py)
ebb_check(contract_check_reports tests/tools/test_check_contract.py)
