# The kernel against a plain model of it. EBB_MODEL_OPS and EBB_MODEL_SEED choose how much and what.
file(GLOB model_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/model/*.c)
ebb_test(model ${model_sources})
