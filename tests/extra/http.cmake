# HTTP as clients meet it: real ones (curl, nghttp, Node), and one that does what none of them would. The tests
# that their source names are run again with a collection before every allocation, as NAME_gc.
ebb_program(http_test_server ebb ${CMAKE_CURRENT_SOURCE_DIR}/http_server.c)
ebb_program(http_loops_server ebb ${CMAKE_CURRENT_SOURCE_DIR}/http_loops_server.c)

# ebb_http_test(NAME SCRIPT ARGUMENT...) registers a script of tests/tools that runs the server.
function(ebb_http_test name script)
    add_test(NAME ${name}
        COMMAND Python3::Interpreter tests/tools/${script} $<TARGET_FILE:http_test_server> ${ARGN}
        WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(${name} PROPERTIES TIMEOUT ${EBB_TEST_TIMEOUT_S})
endfunction()

foreach(id IT-01 IT-02 IT-03 IT-04 IT-05 IT-06 AS-01 AS-02)
    ebb_http_test(${id} test_http.py ${id})
    ebb_http_test(${id}_gc test_http.py ${id})
    set_tests_properties(${id}_gc PROPERTIES ENVIRONMENT EBB_TEST_GC=1)
endforeach()
ebb_http_test(http test_http_answers.py)
ebb_http_test(http_bodies test_http_bodies.py)
ebb_http_test(http_limits test_http_limits.py)
ebb_http_test(http_rules test_http_rules.py)
ebb_http_test(http_shutdown test_http_shutdown.py)
if(TARGET ebb_cli)
    foreach(id http_loops soak_http_loops)
        add_test(NAME ${id}
            COMMAND Python3::Interpreter tests/tools/test_http_loops.py $<TARGET_FILE:http_loops_server>
                $<TARGET_FILE:ebb_cli>
            WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
        set_tests_properties(${id} PROPERTIES TIMEOUT ${EBB_TEST_TIMEOUT_S})
    endforeach()
    set_tests_properties(soak_http_loops PROPERTIES LABELS soak TIMEOUT 1000 ENVIRONMENT EBB_SHUTDOWN_ROUNDS=20)
    ebb_http_test(http_fan test_http_fan.py $<TARGET_FILE:ebb_cli>)
    foreach(of Rates Places Crowds Memory Descriptors)
        string(TOLOWER ${of} id)
        ebb_http_test(http_stalled_${id} test_http_stalled.py $<TARGET_FILE:ebb_cli> ${of})
    endforeach()
    set_tests_properties(http_stalled_crowds http_stalled_memory http_stalled_descriptors PROPERTIES RUN_SERIAL TRUE)
    ebb_http_test(soak_http_stalled test_http_stalled.py $<TARGET_FILE:ebb_cli> --full Crowds)
    set_tests_properties(soak_http_stalled PROPERTIES LABELS soak RUN_SERIAL TRUE)
endif()
set_tests_properties(http PROPERTIES RUN_SERIAL TRUE) # it measures how fast a reset is heard

# ebb_http_soak(ID SHORT LONG ARGUMENT...) registers it for a short while, and for a long one in `make soak`.
function(ebb_http_soak id short long)
    ebb_http_test(${id} http_soak.py ${id} ${short} ${ARGN})
    ebb_http_test(soak_${id} http_soak.py ${id} ${long} ${ARGN})
    set_tests_properties(soak_${id} PROPERTIES LABELS soak TIMEOUT 1000)
endfunction()
ebb_http_soak(ST-01 3 60)
ebb_http_soak(ST-02 3 60)
set_tests_properties(soak_ST-01 soak_ST-02 PROPERTIES LABELS "soak;st")
if(TARGET bench-http-storm)
    ebb_http_soak(http_memory 100000 1000000 $<TARGET_FILE:bench-http-storm>)
endif()
