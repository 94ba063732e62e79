# The sweeps over the fixtures and the lab's scenarios count polls by standing in for ebb_runtime_pump.
target_link_options(lab.nth_stories PRIVATE -Wl,--wrap=ebb_runtime_pump)
target_link_libraries(lab.nth_stories PRIVATE PkgConfig::JANSSON)

# Injection again, with the library that has planted bugs: the kernel's oracles have to find them.
ebb_planted_program(lab.inject_planted ${dir}/inject.c)
ebb_run(lab.inject_planted lab.inject_planted)

ebb_python(lab.explore.soak support/soak.py explore $<TARGET_FILE:ebb_cli>)
ebb_python(lab.replay.soak support/soak.py replay $<TARGET_FILE:ebb_cli>
    ${PROJECT_SOURCE_DIR}/build/clang/ebb ${PROJECT_SOURCE_DIR}/build/release/ebb)
ebb_soak(lab.explore.soak lab.replay.soak)
