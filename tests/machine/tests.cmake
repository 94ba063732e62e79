# Machines against a plain model of them. EBB_MODEL_TURNS and EBB_MODEL_SEED choose how much and what.
file(GLOB model_sources CONFIGURE_DEPENDS ${dir}/model/*.c)
ebb_test_program(machine.model ${model_sources})
ebb_run(machine.model machine.model)
