# Each example runs, says what it should, and ends with 0; and what the README shows is one of them.
set(example_files chat crawler echo embed fanout greeter hello jobs machine payment pipeline pool proxy publish race tour
    upload web)
list(TRANSFORM example_files REPLACE "(.+)" "$<TARGET_FILE:example_\\1>")
ebb_python(examples.run examples/examples.py $<TARGET_FILE:ebb_cli> $<TARGET_FILE:http_test_server> ${example_files})

# Every block of README.md and docs/guide.md is run or compiled by a test. The web package is not built for sanitizers.
if(NOT EBB_SANITIZED)
    ebb_python(examples.readme examples/readme.py ${CMAKE_BINARY_DIR})
endif()

# The programs that docs/guide.md shows parts of.
file(GLOB guide_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/examples/guide/*.c)
list(TRANSFORM guide_files REPLACE "^.*/([^/]+)\\.c$" "\\1")
list(TRANSFORM guide_files REPLACE "(.+)" "$<TARGET_FILE:example_guide_\\1>")
ebb_python(examples.guide examples/guide.py $<TARGET_FILE:ebb_cli> ${guide_files})

# The examples of durable orchestrations.
file(GLOB durable_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/examples/durable/*.c)
list(FILTER durable_files EXCLUDE REGEX "/app\\.c$") # cli.durable loads it
list(TRANSFORM durable_files REPLACE "^.*/([^/]+)\\.c$" "\\1")
list(TRANSFORM durable_files REPLACE "(.+)" "$<TARGET_FILE:example_durable_\\1>")
ebb_python(examples.durable examples/durable.py ${durable_files})

# The examples in the lab, with their clients: their sources are compiled with another name for main.
add_executable(lab_stories examples/lab/stories.c)
foreach(name web proxy upload chat service)
    if(IS_DIRECTORY ${PROJECT_SOURCE_DIR}/examples/${name})
        file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/examples/${name}/*.c)
    else()
        set(sources ${PROJECT_SOURCE_DIR}/examples/${name}.c)
    endif()
    add_library(lab_example_${name} OBJECT ${sources})
    target_compile_definitions(lab_example_${name} PRIVATE _POSIX_C_SOURCE=200809L main=${name}_main)
    target_link_libraries(lab_example_${name} PRIVATE ebb)
    target_link_libraries(lab_stories PRIVATE lab_example_${name})
endforeach()
ebb_warnings(lab_stories)
target_link_libraries(lab_stories PRIVATE ebb)
# Every story: under many schedules, with faults too, and with each action at every suspension point.
foreach(name web proxy upload chat service)
    ebb_python(examples.lab_${name} examples/lab.py $<TARGET_FILE:lab_stories> ${name})
endforeach()

# A bug of a user's proxy that depends on time: found, cut down, replayed.
add_executable(lab_race examples/lab/race.c)
ebb_warnings(lab_race)
target_link_libraries(lab_race PRIVATE ebb)
foreach(name examples.lab_race examples.lab_race.soak)
    ebb_python(${name} examples/lab_race.py $<TARGET_FILE:ebb_cli> $<TARGET_FILE:lab_race>)
endforeach()
set_tests_properties(examples.lab_race.soak PROPERTIES ENVIRONMENT EBB_LAB_SCHEDULES=10000)
ebb_soak(examples.lab_race.soak)
