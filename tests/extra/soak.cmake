# `make soak`: the model, the lab, the replay and workflows for EBB_SOAK_SECONDS each. `make test` leaves them out.
function(ebb_soak what)
    add_test(NAME soak_${what}
        COMMAND Python3::Interpreter tests/tools/soak.py ${what} ${ARGN}
        WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(soak_${what} PROPERTIES LABELS soak TIMEOUT 1000000)
endfunction()

# tests/extra is included in the order of names: the model is there already.
ebb_soak(model $<TARGET_FILE:test_model>)
ebb_soak(workflows $<TARGET_FILE:test_workflow_random>)
if(TARGET ebb_cli)
    ebb_soak(explore $<TARGET_FILE:ebb_cli>)
    ebb_soak(replay $<TARGET_FILE:ebb_cli> ${PROJECT_SOURCE_DIR}/build/clang/ebb ${PROJECT_SOURCE_DIR}/build/release/ebb)
endif()
