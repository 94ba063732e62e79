# What the lab records replays to the same bytes, also by the other compiler's build if there is one.
if(TARGET ebb_cli)
    add_test(NAME replay_cli
        COMMAND Python3::Interpreter tests/tools/test_replay_cli.py $<TARGET_FILE:ebb_cli>
            ${PROJECT_SOURCE_DIR}/build/clang/ebb ${PROJECT_SOURCE_DIR}/build/release/ebb
        WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(replay_cli PROPERTIES TIMEOUT ${EBB_TEST_TIMEOUT_S})
endif()
