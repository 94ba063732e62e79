# HTTP as clients meet it: real ones (curl, nghttp, Node), and one that does what none of them would. The tests that
# the seed names run again with a collection before every allocation, as NAME.gc.
ebb_program(http_test_server ebb ${dir}/programs/server.c)
ebb_program(http_loops_server ebb ${dir}/programs/loops_server.c)
ebb_program(http_test_client ebb ${dir}/programs/client.c)
ebb_program(http_attacker ebb ${dir}/programs/attacker.c)

# ebb_http(NAME SCRIPT ARGUMENT...) registers a script of tests/http that runs the server.
function(ebb_http name script)
    ebb_python(${name} http/${script} $<TARGET_FILE:http_test_server> ${ARGN})
endfunction()

foreach(behaviour
        closed_connection_cancels.IT-01 reset_cancels_one_stream.IT-02 dying_client.IT-03 goaway.IT-04
        cancelled_handler_is_silent.IT-05 others_are_answered_right.IT-06 connections_close_at_any_stage.AS-01
        streams_close_at_any_stage.AS-02)
    string(REGEX REPLACE ".*\\." "" id ${behaviour})
    ebb_gc(http.${behaviour} Python3::Interpreter tests/http/handlers_end.py $<TARGET_FILE:http_test_server> ${id})
    ebb_label(${id} http.${behaviour} http.${behaviour}.gc)
endforeach()
foreach(name stack_bytes unanswered)
    ebb_run(http.${name}.gc http.${name})
    set_tests_properties(http.${name}.gc PROPERTIES ENVIRONMENT EBB_TEST_GC=1)
endforeach()
foreach(name limits rules shutdown h1_clients)
    ebb_http(http.${name} ${name}.py)
endforeach()
ebb_http(http.shutdown.soak shutdown.py UnderLoad)
ebb_soak(http.shutdown.soak)
set_tests_properties(http.shutdown.soak PROPERTIES ENVIRONMENT EBB_SHUTDOWN_ROUNDS=10)
ebb_http(http.answers answers.py -Latency)
ebb_http(http.reset_latency answers.py Latency)
ebb_http(http.bodies bodies.py -Whole)
ebb_http(http.bodies_whole bodies.py Whole)
ebb_http(http.fan fan.py $<TARGET_FILE:ebb_cli>)
# Our client against servers that are not ours: nghttpd, Node, Python's, and nginx if there is one.
ebb_python(http.client_peers http/client_peers.py $<TARGET_FILE:http_test_client> $<TARGET_FILE:http_test_server>
    $<TARGET_FILE:example_proxy>)

foreach(name http.loops http.loops.soak)
    ebb_python(${name} http/loops.py $<TARGET_FILE:http_loops_server> $<TARGET_FILE:ebb_cli>)
endforeach()
set_tests_properties(http.loops.soak PROPERTIES ENVIRONMENT EBB_SHUTDOWN_ROUNDS=20)

foreach(of Rates Places Crowds Memory Descriptors)
    string(TOLOWER ${of} name)
    ebb_http(http.stalled_${name} stalled.py $<TARGET_FILE:ebb_cli> ${of})
endforeach()
ebb_http(http.stalled_crowds.soak stalled.py $<TARGET_FILE:ebb_cli> --full Crowds)
ebb_soak(http.loops.soak http.stalled_crowds.soak)

# Attacks. Those of ebb_clock below measure the latency of a client beside them.
set(attacks attacks.py $<TARGET_FILE:http_attacker>)
ebb_http(http.attacks_floods ${attacks} Floods)
ebb_http(http.attacks_floods.soak ${attacks} Floods)
ebb_http(http.attacks_malformed ${attacks} MalformedBesideOthers)
ebb_http(http.attacks_malformed.soak ${attacks} MalformedBesideOthers)
ebb_http(http.attacks_slow ${attacks} SlowOnes)
ebb_http(http.attacks_connections ${attacks} Connections)
ebb_http(http.attacks_budgets ${attacks} -Floods -MalformedBesideOthers -SlowOnes -Connections)
ebb_http(http.attacks_rates attacks_rates.py $<TARGET_FILE:http_attacker>)
ebb_soak(http.attacks_floods.soak http.attacks_malformed.soak)
set_tests_properties(http.attacks_floods.soak http.attacks_malformed.soak PROPERTIES ENVIRONMENT EBB_ATTACK_SECONDS=10)

# ST-01, ST-02 and the memory of many requests: for a short while, and for a long one in `make soak`.
function(ebb_http_soak name id short long)
    ebb_http(http.${name} soak.py ${id} ${short} ${ARGN})
    ebb_http(http.${name}.soak soak.py ${id} ${long} ${ARGN})
    ebb_soak(http.${name}.soak)
endfunction()
ebb_http_soak(crowd_with_cancels.ST-01 ST-01 3 60)
ebb_http_soak(connections_come_and_go.ST-02 ST-02 3 60)
ebb_label(ST-01 http.crowd_with_cancels.ST-01 http.crowd_with_cancels.ST-01.soak)
ebb_label(ST-02 http.connections_come_and_go.ST-02 http.connections_come_and_go.ST-02.soak)
ebb_label(st http.crowd_with_cancels.ST-01.soak http.connections_come_and_go.ST-02.soak)
if(TARGET bench-http-storm)
    ebb_http_soak(memory http_memory 100000 1000000 $<TARGET_FILE:bench-http-storm>)
endif()

# The randomised driver: servers, clients and raw peers in one process. The soak goes on with other seeds.
file(GLOB driver_sources CONFIGURE_DEPENDS ${dir}/driver/*.c)
ebb_program(http.driver ebb ${driver_sources})
target_include_directories(http.driver PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(http.driver PRIVATE PkgConfig::CMOCKA)
ebb_run(http.driver http.driver --seconds 10)
ebb_run(http.driver.soak
    sh -c "exec '$<TARGET_FILE:http.driver>' --seed 1000000 --seconds \"\${EBB_SOAK_SECONDS:-60}\"")
ebb_soak(http.driver.soak)

ebb_clock(http.reset_latency http.bodies_whole http.attacks_floods http.attacks_floods.soak http.attacks_malformed
    http.attacks_malformed.soak http.attacks_slow http.attacks_connections http.attacks_rates)
