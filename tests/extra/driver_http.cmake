# The randomised driver over HTTP: servers, clients and raw peers in one process. `make soak` goes on with other seeds
# for EBB_SOAK_SECONDS.
file(GLOB driver_http_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/driver_http/*.c)
ebb_program(test_driver_http ebb ${driver_http_sources})
target_include_directories(test_driver_http PRIVATE ${PROJECT_SOURCE_DIR})
target_compile_definitions(test_driver_http PRIVATE _POSIX_C_SOURCE=200809L)
target_link_libraries(test_driver_http PRIVATE PkgConfig::CMOCKA)
add_test(NAME driver_http COMMAND test_driver_http --seconds 10 WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
set_tests_properties(driver_http PROPERTIES TIMEOUT ${EBB_TEST_TIMEOUT_S})
add_test(NAME soak_driver_http
    COMMAND sh -c "exec '$<TARGET_FILE:test_driver_http>' --seed 1000000 --seconds \"\${EBB_SOAK_SECONDS:-60}\""
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
set_tests_properties(soak_driver_http PROPERTIES LABELS soak TIMEOUT 1000000)
