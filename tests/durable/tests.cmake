# SQLite with everything at every operation, and a million rows; a million rows on PostgreSQL.
foreach(name power faults scale)
    ebb_run(durable.sqlite_${name}.soak durable.sqlite_${name})
    ebb_soak(durable.sqlite_${name}.soak)
endforeach()
set_tests_properties(durable.sqlite_power.soak PROPERTIES ENVIRONMENT EBB_POWER_STEP=1)
set_tests_properties(durable.sqlite_faults.soak PROPERTIES ENVIRONMENT EBB_FAULT_STEP=1)
set_tests_properties(durable.sqlite_scale.soak PROPERTIES ENVIRONMENT EBB_SCALE_ROWS=1000000)
ebb_run(durable.postgres_claims.soak durable.postgres_claims)
ebb_soak(durable.postgres_claims.soak)
set_tests_properties(durable.postgres_claims.soak PROPERTIES ENVIRONMENT EBB_CLAIM_ROWS=1000000)

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

# Alone, as what compares times.
ebb_clock(durable.cancel_latency)

# Recorded histories with the code of several compilers, which is not that of a sanitizer.
if(NOT EBB_SANITIZED)
    ebb_python(durable.histories durable/histories.py $<TARGET_FILE:ebb_cli> ${PROJECT_SOURCE_DIR}/include)
endif()

# A wall clock that is moved: linked into the test, and loaded into a server that knows no sanitizer.
set(dir ${CMAKE_CURRENT_LIST_DIR})
target_sources(durable.wall_clock PRIVATE ${dir}/programs/shifted_clock.c)
add_library(durable.shifted_clock MODULE ${dir}/programs/shifted_clock.c)
ebb_warnings(durable.shifted_clock)
target_include_directories(durable.shifted_clock PRIVATE ${PROJECT_SOURCE_DIR})
target_compile_options(durable.shifted_clock PRIVATE -fno-sanitize=all)
target_link_options(durable.shifted_clock PRIVATE -fno-sanitize=all)
target_compile_definitions(durable.wall_clock PRIVATE EBB_SHIFTED_CLOCK_SO="$<TARGET_FILE:durable.shifted_clock>")
add_dependencies(durable.wall_clock durable.shifted_clock)
ebb_run(durable.wall_clock.soak durable.wall_clock)
ebb_soak(durable.wall_clock.soak)
set_tests_properties(durable.wall_clock.soak PROPERTIES ENVIRONMENT EBB_CLOCK_MOVES=60)
