# Random programs by the VM and by a plain interpreter. EBB_REFERENCE_PROGRAMS and EBB_REFERENCE_SEED choose how many and
# which.
file(GLOB reference_sources CONFIGURE_DEPENDS ${dir}/reference/*.c)
ebb_test_program(lang.reference ${reference_sources})
ebb_run(lang.reference lang.reference)
