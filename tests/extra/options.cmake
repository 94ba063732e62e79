# Until tests are found in the folders of their layers.
ebb_test(options ${CMAKE_CURRENT_SOURCE_DIR}/base/test_options.c)
