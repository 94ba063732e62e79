# A service with a dashboard, for the tests of its page.
ebb_program(harbour ebb ${dir}/programs/harbour.c)
