# HTTP as clients meet it: real ones (curl, nghttp, Node), and one that does what none of them would.
ebb_program(http_test_server ebb ${CMAKE_CURRENT_SOURCE_DIR}/http_server.c)
