# The randomised driver over the whole API: 50 s of it here, and as much with threads as 10 s allow.
file(GLOB driver_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/driver/*.c)
foreach(program driver driver_threads)
    ebb_program(test_${program} ebb ${driver_sources})
    target_include_directories(test_${program} PRIVATE ${PROJECT_SOURCE_DIR})
    target_compile_definitions(test_${program} PRIVATE _POSIX_C_SOURCE=200809L)
endforeach()
