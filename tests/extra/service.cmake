# Injection again, with the library that has planted bugs: the kernel's oracles have to find them.
ebb_program(test_inject_planted ebb_mutants ${CMAKE_CURRENT_SOURCE_DIR}/test_inject.c)
target_include_directories(test_inject_planted PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(test_inject_planted PRIVATE PkgConfig::CMOCKA)
add_test(NAME inject_planted COMMAND test_inject_planted WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
set_tests_properties(inject_planted PROPERTIES TIMEOUT ${EBB_TEST_TIMEOUT_S})

# The service skeleton, as an operator meets it: signals, budgets, kill -9, and its rehearsal.
add_test(NAME service
    COMMAND Python3::Interpreter tests/tools/test_service.py
        $<TARGET_FILE:ebb_cli> $<TARGET_FILE:example_service>
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
set_tests_properties(service PROPERTIES TIMEOUT ${EBB_TEST_TIMEOUT_S})
