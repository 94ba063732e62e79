# Futures: the tests that the seed names, the matrix of all combinators, the soak; and most tests of futures again
# with a collection before every allocation, as NAME.gc.
target_link_options(future.nth_alloc PRIVATE -Wl,--wrap=ebb__alloc_slow)
foreach(name matrix lab)
    target_sources(future.${name} PRIVATE ${dir}/stage/stage.c ${dir}/stage/model.c)
endforeach()

# Two runtimes and the heap's own tests choose themselves when to collect.
foreach(source IN LISTS sources)
    get_filename_component(name ${source} NAME_WE)
    if(NOT name MATCHES "^(bridge|far|heap|peer)(_|$)|^masked_awaits$")
        ebb_run(future.${name}.gc future.${name})
        set_tests_properties(future.${name}.gc PROPERTIES ENVIRONMENT EBB_TEST_GC=1)
    endif()
endforeach()

ebb_test_program(future.ids ${dir}/programs/ids.c)
foreach(behaviour
        cancel_shows_at_once.UT-01 then_cancels_its_source.UT-02 all_cancels_its_inputs.UT-03
        race_cancels_its_inputs.UT-04 timer_and_worker_stop_early.UT-05 on_cancel_is_called_once.UT-06
        cleanups_run_last_first.UT-07 cancel_of_completed_is_false.UT-08 cancel_of_failed_is_false.UT-09
        deep_graph_without_recursion.UT-10 cancelled_is_one_atomic_word.UT-11 queue_holds_any_graph.UT-12
        no_leak_after_cancel.AS-03 no_leak_of_deep_graph.AS-04 one_of_two_ends_wins.AS-05)
    string(REGEX REPLACE ".*\\." "" id ${behaviour})
    ebb_gc(future.${behaviour} future.ids ${id})
    ebb_label(${id} future.${behaviour} future.${behaviour}.gc)
endforeach()

# ST-03 and ST-04 for 3 s, and for as long as the seed says in `make soak` and `make st`.
ebb_test_program(future.soak ${dir}/programs/soak.c)
function(ebb_future_soak behaviour id seconds)
    set(name future.${behaviour}.${id})
    ebb_gc(${name} future.soak ${id} 3)
    ebb_run(${name}.soak future.soak ${id} ${seconds})
    ebb_label(${id} ${name} ${name}.gc ${name}.soak)
    ebb_label(st ${name}.soak)
    ebb_soak(${name}.soak)
endfunction()
ebb_future_soak(deep_chains ST-03 30)
ebb_future_soak(mixed_ends ST-04 60)

# The verifier's tests again, with the library that has planted bugs: a collection forgets a root.
ebb_planted_program(future.heap_planted ${dir}/heap_verifier.c)
ebb_run(future.heap_planted future.heap_planted)

ebb_run(future.heap_model.soak
    ${CMAKE_COMMAND} -E env EBB_HEAP_SOAK=1 EBB_HEAP_SEED=1000000 $<TARGET_FILE:future.heap_model>)
ebb_soak(future.heap_model.soak)

# What races needs both cores to itself, or it does not race.
set_tests_properties(future.peer_threads future.far_threads future.bridge_threads PROPERTIES RUN_SERIAL TRUE)
