# Each example runs, says what it should, and ends with 0; and what the README shows is one of them.
set(example_files echo embed fanout greeter hello payment pipeline pool proxy publish race tour upload web)
list(TRANSFORM example_files REPLACE "(.+)" "$<TARGET_FILE:example_\\1>")
ebb_python(examples.run examples/examples.py $<TARGET_FILE:ebb_cli> $<TARGET_FILE:http_test_server> ${example_files})

# The programs that docs/guide.md shows parts of.
set(guide_files http io lab service system time trace waits workers)
list(TRANSFORM guide_files REPLACE "(.+)" "$<TARGET_FILE:example_guide_\\1>")
ebb_python(examples.guide examples/guide.py $<TARGET_FILE:ebb_cli> ${guide_files})
