# Our client against servers that are not ours: nghttpd, Node, Python's, and nginx if there is one.
ebb_program(http_test_client ebb ${CMAKE_CURRENT_SOURCE_DIR}/http_client.c)
add_test(NAME http_client_peers
    COMMAND Python3::Interpreter tests/tools/test_http_client.py $<TARGET_FILE:http_test_client>
        $<TARGET_FILE:http_test_server> $<TARGET_FILE:example_proxy>
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
set_tests_properties(http_client_peers PROPERTIES TIMEOUT ${EBB_TEST_TIMEOUT_S})
