# Attacks on the HTTP server. Alone, because a client's latency is measured beside them.
ebb_program(http_attacker ebb ${CMAKE_CURRENT_SOURCE_DIR}/http_attacker.c)
ebb_http_test(http_attacks test_http_attacks.py $<TARGET_FILE:http_attacker>)
ebb_http_test(http_rates test_http_rates.py $<TARGET_FILE:http_attacker>)
set_tests_properties(http_attacks http_rates PROPERTIES RUN_SERIAL TRUE)
