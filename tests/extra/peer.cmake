# What races needs both cores to itself, or it does not race.
set_tests_properties(peer_threads far_threads bridge_threads PROPERTIES RUN_SERIAL TRUE)
