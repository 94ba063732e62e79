# HTTP/1 as clients that people have meet it; the bytes that no client would send are in test_http1.c.
add_test(NAME http1_clients
    COMMAND Python3::Interpreter tests/tools/test_http1.py $<TARGET_FILE:http_test_server>
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
set_tests_properties(http1_clients PROPERTIES TIMEOUT ${EBB_TEST_TIMEOUT_S})
