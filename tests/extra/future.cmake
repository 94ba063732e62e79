# Futures: the tests that their source names, the matrix of all combinators, the soak; and every test of
# futures again with a collection before every allocation, as NAME_gc.

# ebb_future_test(NAME PROGRAM ARGUMENT...) registers one run of a program that is built already.
function(ebb_future_test name program)
    add_test(NAME ${name} COMMAND ${program} ${ARGN} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(${name} PROPERTIES TIMEOUT ${EBB_TEST_TIMEOUT_S})
    add_test(NAME ${name}_gc COMMAND ${program} ${ARGN} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(${name}_gc PROPERTIES TIMEOUT ${EBB_TEST_TIMEOUT_S} ENVIRONMENT EBB_TEST_GC=1)
endfunction()

# ebb_future_program(NAME SOURCE...) builds test_NAME and registers nothing.
function(ebb_future_program name)
    ebb_program(test_${name} ebb ${ARGN})
    target_include_directories(test_${name} PRIVATE ${PROJECT_SOURCE_DIR})
    target_link_libraries(test_${name} PRIVATE PkgConfig::CMOCKA ebb_test_support)
endfunction()

file(GLOB future_tests CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/test_future_*.c)
foreach(source IN LISTS future_tests)
    get_filename_component(file ${source} NAME_WE)
    string(REGEX REPLACE "^test_" "" name ${file})
    add_test(NAME ${name}_gc COMMAND test_${name} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(${name}_gc PROPERTIES TIMEOUT ${EBB_TEST_TIMEOUT_S} ENVIRONMENT EBB_TEST_GC=1)
endforeach()

ebb_future_program(future_ids ${CMAKE_CURRENT_SOURCE_DIR}/future/ids.c)
foreach(id UT-01 UT-02 UT-03 UT-04 UT-05 UT-06 UT-07 UT-08 UT-09 UT-10 UT-11 UT-12 AS-03 AS-04 AS-05)
    ebb_future_test(${id} test_future_ids ${id})
endforeach()

# ebb_future_soak(ID SECONDS) registers it for 3 s, and for as long as its source says in `make soak`.
ebb_future_program(future_soak ${CMAKE_CURRENT_SOURCE_DIR}/future/soak.c)
function(ebb_future_soak id seconds)
    ebb_future_test(${id} test_future_soak ${id} 3)
    add_test(NAME soak_${id} COMMAND test_future_soak ${id} ${seconds} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(soak_${id} PROPERTIES LABELS soak TIMEOUT 1000)
endfunction()
ebb_future_soak(ST-03 30)
ebb_future_soak(ST-04 60)
set_tests_properties(soak_ST-03 soak_ST-04 PROPERTIES LABELS "soak;st")

ebb_future_program(future_nth_alloc ${CMAKE_CURRENT_SOURCE_DIR}/future/nth_alloc.c)
target_link_options(test_future_nth_alloc PRIVATE -Wl,--wrap=ebb__alloc_slow)
ebb_future_test(future_nth_alloc test_future_nth_alloc)

set(future_dir ${CMAKE_CURRENT_SOURCE_DIR}/future)
ebb_future_program(future_matrix ${future_dir}/matrix.c ${future_dir}/stage.c ${future_dir}/model.c)
ebb_future_test(future_matrix test_future_matrix)
ebb_future_program(future_lab ${future_dir}/lab.c ${future_dir}/stage.c ${future_dir}/model.c)
ebb_future_test(future_lab test_future_lab)
