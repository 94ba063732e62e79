# SQLite with everything at every operation, and a million rows.
foreach(name power faults scale)
    ebb_run(durable.sqlite_${name}.soak durable.sqlite_${name})
    ebb_soak(durable.sqlite_${name}.soak)
endforeach()
set_tests_properties(durable.sqlite_power.soak PROPERTIES ENVIRONMENT EBB_POWER_STEP=1)
set_tests_properties(durable.sqlite_faults.soak PROPERTIES ENVIRONMENT EBB_FAULT_STEP=1)
set_tests_properties(durable.sqlite_scale.soak PROPERTIES ENVIRONMENT EBB_SCALE_ROWS=1000000)

# Processes and servers that are killed, for ten minutes.
foreach(name crash_sqlite crash_postgres)
    ebb_run(durable.${name}.soak durable.${name})
    ebb_soak(durable.${name}.soak)
    set_tests_properties(durable.${name}.soak PROPERTIES ENVIRONMENT EBB_CRASH_SECONDS=600)
endforeach()
ebb_run(durable.random.soak durable.random)
ebb_soak(durable.random.soak)
set_tests_properties(durable.random.soak PROPERTIES ENVIRONMENT EBB_RANDOM_SEEDS=2000)

# Longer outages, and more ways to lose a lease.
ebb_run(durable.lost_leases.soak durable.lost_leases)
ebb_soak(durable.lost_leases.soak)
set_tests_properties(durable.lost_leases.soak PROPERTIES ENVIRONMENT EBB_LEASES_ALL=1)

# Recorded histories with the code of several compilers, which is not that of a sanitizer.
if(NOT EBB_SANITIZED)
    ebb_python(durable.histories durable/histories.py $<TARGET_FILE:ebb_cli> ${PROJECT_SOURCE_DIR}/include)
endif()
