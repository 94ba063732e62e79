# `ebb lab`, and the bugs that are planted in ebb-mutant: each must be found by its oracle.
if(TARGET ebb_cli AND TARGET ebb_mutant_cli)
    add_test(NAME lab_cli
        COMMAND Python3::Interpreter tests/tools/test_lab_cli.py
            $<TARGET_FILE:ebb_cli> $<TARGET_FILE:ebb_mutant_cli>
        WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(lab_cli PROPERTIES TIMEOUT ${EBB_TEST_TIMEOUT_S})
endif()
