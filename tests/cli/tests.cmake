# The `ebb` command from outside.
set(EBB_CLI $<TARGET_FILE:ebb_cli>)

# Logs of real workflows, as they are and doctored.
ebb_python(cli.audit cli/audit.py ${EBB_CLI} $<TARGET_FILE:workflow.audit>)
# Files that a second implementation of the format writes.
ebb_python(cli.trace cli/trace.py ${EBB_CLI})
# What a service on several loops records: checked, replayed, exported, summed up, and doctored.
ebb_python(cli.record cli/record.py ${EBB_CLI} $<TARGET_FILE:http_loops_server> $<TARGET_FILE:example_service>)
# One request through a service, an instance, an activity and a machine, also in two processes: arrows join them.
ebb_program(cli.connected_service ebb ${dir}/programs/connected.c)
ebb_python(cli.connected cli/connected.py ${EBB_CLI} $<TARGET_FILE:cli.connected_service>)
ebb_program(cli.crowd ebb ${dir}/programs/crowd.c)
# A service under load, looked at in a terminal and by programs.
ebb_python(cli.top cli/top.py ${EBB_CLI} $<TARGET_FILE:example_service> $<TARGET_FILE:cli.crowd>)
# curl, and clients that attack it.
ebb_python(cli.files cli/files.py ${EBB_CLI})
# The bugs that are planted in ebb-mutant: each must be found by its oracle.
ebb_python(cli.lab cli/lab.py ${EBB_CLI} $<TARGET_FILE:ebb_mutant_cli>)
# What the lab records replays to the same bytes, also by the other compiler's build if there is one.
ebb_python(cli.replay cli/replay.py ${EBB_CLI}
    ${PROJECT_SOURCE_DIR}/build/clang/ebb ${PROJECT_SOURCE_DIR}/build/release/ebb)
# The fixtures of the contract, broken copies of them, and bugs that they must find.
ebb_run(cli.fixtures ebb_cli fixture run)
ebb_python(cli.fixtures_report cli/fixtures.py ${EBB_CLI} $<TARGET_FILE:ebb_mutant_cli>)
# Programs of typestate machines: diagnostics, formatting, modules.
ebb_python(cli.lang cli/lang.py ${EBB_CLI})
# Programs of typestate machines run: what they print, exit codes, signals, traces.
ebb_python(cli.run cli/run.py ${EBB_CLI})
# The same programs in the lab: expectations, explored schedules, files that replay a failure.
ebb_python(cli.test cli/test.py ${EBB_CLI})
# The conformance suite of stores, and URLs that lead to none.
ebb_python(cli.provider cli/provider.py ${EBB_CLI})
# Workers and operators of stores: SQLite, and a PostgreSQL server of its own; libraries that they load.
foreach(name other empty machine)
    add_library(cli.app_${name} MODULE ${dir}/apps/${name}.c)
    ebb_warnings(cli.app_${name})
    target_include_directories(cli.app_${name} PRIVATE ${PROJECT_SOURCE_DIR}/include)
endforeach()
ebb_program(cli.postgres ebb ${dir}/programs/postgres.c)
target_include_directories(cli.postgres PRIVATE ${PROJECT_SOURCE_DIR})
ebb_python(cli.durable cli/durable.py ${EBB_CLI} $<TARGET_FILE:example_durable_app> $<TARGET_FILE:cli.app_other>
    $<TARGET_FILE:cli.app_empty> $<TARGET_FILE:cli.postgres>)
# What services show when they stop, in a terminal and to systemd, and the unit file.
ebb_python(cli.services cli/services.py ${EBB_CLI} $<TARGET_FILE:example_durable_app>
    ${PROJECT_SOURCE_DIR}/share/ebb.service)
# The daemon, with real stores and a program.
ebb_python(cli.daemon cli/daemon.py ${EBB_CLI} $<TARGET_FILE:example_durable_app> $<TARGET_FILE:cli.app_empty>
    $<TARGET_FILE:cli.postgres>)
# The shop of `make run`, under load: stopped, killed, and two of it on PostgreSQL.
foreach(name cli.shop cli.shop.soak)
    ebb_python(${name} cli/shop.py ${EBB_CLI} $<TARGET_FILE:example_shop> $<TARGET_FILE:cli.postgres>)
endforeach()
set_tests_properties(cli.shop.soak PROPERTIES ENVIRONMENT EBB_SHOP_SOAK=1)
ebb_soak(cli.shop.soak)
# What the commands say that they take, and what is made of it: man pages, completions. It runs no other C than the rest.
if(NOT EBB_SANITIZED)
    ebb_python(cli.help cli/help.py ${EBB_CLI})
endif()
# What is fit for a service and what is not: limits, rights, addresses, stores, a PostgreSQL server of its own.
ebb_python(cli.doctor cli/doctor.py ${EBB_CLI} $<TARGET_FILE:cli.postgres> $<TARGET_FILE:cli.app_machine>)
# Projects that ebb init writes, and what it refuses.
ebb_python(cli.init cli/init.py ${EBB_CLI})
# 2,000 requests a second for a minute with the dashboard open, beside examples/web; then 10,000 idle connections.
ebb_run(cli.serve_load.soak Python3::Interpreter bench/serve/run.py ${CMAKE_BINARY_DIR})
ebb_clock(cli.serve_load.soak)
ebb_soak(cli.serve_load.soak)
# Programs of typestate machines in the daemon.
ebb_python(cli.daemon_programs cli/daemon_programs.py ${EBB_CLI} ${PROJECT_SOURCE_DIR}/examples/lang)
