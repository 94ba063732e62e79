# Machines against a plain model of them. EBB_MODEL_TURNS and EBB_MODEL_SEED choose how much and what.
file(GLOB model_sources CONFIGURE_DEPENDS ${dir}/model/*.c)
ebb_test_program(machine.model ${model_sources})
ebb_run(machine.model machine.model)

# Machines among fibers, futures and regions at random. `make soak` goes on with other seeds.
file(GLOB driver_sources CONFIGURE_DEPENDS ${dir}/driver/*.c)
ebb_program(machine.driver ebb ${driver_sources})
target_include_directories(machine.driver PRIVATE ${PROJECT_SOURCE_DIR})
ebb_run(machine.driver machine.driver --seconds 8)
ebb_run(machine.driver.soak
    sh -c "exec '$<TARGET_FILE:machine.driver>' --seed 1000000 --seconds \"\${EBB_SOAK_SECONDS:-60}\"")
ebb_soak(machine.driver.soak)
