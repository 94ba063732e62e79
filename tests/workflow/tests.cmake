# The service skeleton, as an operator meets it: signals, budgets, kill -9, and its rehearsal.
ebb_python(workflow.service workflow/service.py $<TARGET_FILE:ebb_cli> $<TARGET_FILE:example_service>)

ebb_python(workflow.random.soak support/soak.py workflows $<TARGET_FILE:workflow.random>)
ebb_soak(workflow.random.soak)
