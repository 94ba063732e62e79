# A program under ASan hears of leaks in fibers, whether or not the library was built with it too.
string(FIND "${CMAKE_C_FLAGS}" "-fsanitize=thread" with_tsan)
if(with_tsan EQUAL -1)
    ebb_program(leak_in_fiber ebb tools/leak_in_fiber.c)
    target_compile_options(leak_in_fiber PRIVATE -fsanitize=address)
    target_link_options(leak_in_fiber PRIVATE -fsanitize=address)
    add_test(NAME leak_in_fiber COMMAND leak_in_fiber)
    # The two lengths, 1230 and 3210 bytes; a crash has neither.
    set_tests_properties(leak_in_fiber PROPERTIES TIMEOUT ${EBB_TEST_TIMEOUT_S}
        PASS_REGULAR_EXPRESSION "leak of 3210 byte.*leaks_here.*leak of 1230 byte.*leaks_here")
endif()
