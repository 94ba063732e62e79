# Attacks on the HTTP server. Alone, because a client's latency is measured beside them.
ebb_program(http_attacker ebb ${CMAKE_CURRENT_SOURCE_DIR}/http_attacker.c)
add_test(NAME http_attacks
    COMMAND Python3::Interpreter tests/tools/test_http_attacks.py
        $<TARGET_FILE:http_test_server> $<TARGET_FILE:http_attacker>
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
set_tests_properties(http_attacks PROPERTIES TIMEOUT ${EBB_TEST_TIMEOUT_S} RUN_SERIAL TRUE)
