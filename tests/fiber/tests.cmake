# A program under ASan hears of leaks in fibers, whether or not the library was built with it too.
string(FIND "${CMAKE_C_FLAGS}" "-fsanitize=thread" with_tsan)
if(with_tsan EQUAL -1 AND NOT EBB_EMULATED) # no ASan runs under qemu-user
    ebb_program(fiber.leak ebb ${dir}/programs/leak.c)
    target_compile_options(fiber.leak PRIVATE -fsanitize=address)
    target_link_options(fiber.leak PRIVATE -fsanitize=address)
    ebb_run(fiber.leak fiber.leak)
    # The two lengths, 1230 and 3210 bytes; a crash has neither.
    set_tests_properties(fiber.leak PROPERTIES
        ENVIRONMENT ASAN_OPTIONS=log_path=stderr # not to the files of scripts/sanitizer-tests: its report is what is tested
        PASS_REGULAR_EXPRESSION "leak of 3210 byte.*leaks_here.*leak of 1230 byte.*leaks_here")
endif()
