# The kernel against a plain model of it. EBB_MODEL_OPS and EBB_MODEL_SEED choose how much and what.
file(GLOB model_sources CONFIGURE_DEPENDS ${dir}/model/*.c)
ebb_test_program(kernel.model ${model_sources})
ebb_run(kernel.model kernel.model)
ebb_python(kernel.model.soak support/soak.py model $<TARGET_FILE:kernel.model>)
ebb_soak(kernel.model.soak)
