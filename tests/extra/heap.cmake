# The verifier's tests again, with the library that has planted bugs: a collection forgets a root.
ebb_program(test_heap_planted ebb_mutants ${CMAKE_CURRENT_SOURCE_DIR}/test_heap_verifier.c)
target_include_directories(test_heap_planted PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(test_heap_planted PRIVATE PkgConfig::CMOCKA)
add_test(NAME heap_planted COMMAND test_heap_planted WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
set_tests_properties(heap_planted PROPERTIES TIMEOUT ${EBB_TEST_TIMEOUT_S})

# `make soak`: the model with other seeds, for EBB_SOAK_SECONDS.
add_test(NAME soak_heap
    COMMAND ${CMAKE_COMMAND} -E env EBB_HEAP_SOAK=1 EBB_HEAP_SEED=1000000 $<TARGET_FILE:test_heap_model>
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
set_tests_properties(soak_heap PROPERTIES LABELS soak TIMEOUT 1000000)
