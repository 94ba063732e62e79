# The randomised driver over the whole API: 60 s of it in all, a quarter of that with a thread a runtime. `make soak`
# goes on with other seeds for EBB_SOAK_SECONDS each.
file(GLOB driver_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/driver/*.c)
function(ebb_driver_test name seconds)
    ebb_program(test_${name} ebb ${driver_sources})
    target_include_directories(test_${name} PRIVATE ${PROJECT_SOURCE_DIR})
    target_compile_definitions(test_${name} PRIVATE _POSIX_C_SOURCE=200809L)
    add_test(NAME ${name} COMMAND test_${name} --seconds ${seconds} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(${name} PROPERTIES TIMEOUT ${EBB_TEST_TIMEOUT_S})
    add_test(NAME soak_${name}
        COMMAND sh -c "exec '$<TARGET_FILE:test_${name}>' --seed 1000000 --seconds \"\${EBB_SOAK_SECONDS:-60}\""
        WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(soak_${name} PROPERTIES LABELS soak TIMEOUT 1000000)
endfunction()
ebb_driver_test(driver 45)
ebb_driver_test(driver_threads 15)

# A seed that has found something, with GCC: the order in which a program is made up is the compiler's.
add_test(NAME driver_found COMMAND test_driver --seed 5041748 WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
