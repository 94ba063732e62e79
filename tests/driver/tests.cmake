# The randomised driver over the whole API, on one thread and with a thread a runtime. `make soak` goes on with other
# seeds for EBB_SOAK_SECONDS each.
function(ebb_driver name seconds)
    ebb_program(${name} ebb ${sources})
    target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
    ebb_run(${name} ${name} --seconds ${seconds})
    ebb_run(${name}.soak
        sh -c "exec '$<TARGET_FILE:${name}>' --seed 1000000 --seconds \"\${EBB_SOAK_SECONDS:-60}\"")
    ebb_soak(${name}.soak)
endfunction()
file(GLOB sources CONFIGURE_DEPENDS ${dir}/program/*.c)
ebb_driver(driver.random 20)
ebb_driver(driver.threads 10)

# A seed that has found something, with GCC: the order in which a program is made up is the compiler's.
ebb_run(driver.found driver.random --seed 5041748)
