# Each example runs, says what it should, and ends with 0; and what the README shows is one of them.
set(example_names echo embed fanout greeter hello payment pipeline pool proxy publish race tour upload web)
set(example_files ${example_names})
list(TRANSFORM example_files REPLACE "(.+)" "$<TARGET_FILE:example_\\1>")
add_test(NAME examples
    COMMAND Python3::Interpreter tests/tools/test_examples.py $<TARGET_FILE:ebb_cli>
        $<TARGET_FILE:http_test_server> ${example_files}
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
set_tests_properties(examples PROPERTIES TIMEOUT ${EBB_TEST_TIMEOUT_S})
