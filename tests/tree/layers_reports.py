import unittest

from tree import TreeTest


class CheckLayers(TreeTest):
    script = "check-layers"

    def setUp(self):
        super().setUp()
        self.write("base/slab.c", '#include "base/slab.h"\n#include <string.h>\n')
        self.write("kernel/task.c", '#include "base/slab.h"\n#include <ebb/kernel.h>\n')
        self.write("include/ebb/kernel.h", "#include <stdint.h>\n#include <ebb/base.h>\n"
                                           "#include <ebb/event.def>\n")
        self.write("include/ebb/ebb.h", "#include <ebb/cli.h>\n")
        self.write("cli/main.c", "#include <stdio.h>\n#include <ebb/ebb.h>\n")
        self.write("tests/kernel/task.c", '#include <ebb/ebb.h>\n#include "kernel/task.h"\n')

    def test_a_tree_in_order_is_clean(self):
        self.assert_clean()

    def test_an_upward_include_is_reported_with_its_line(self):
        self.write("base/slab.c", '\n\n#include "kernel/task.h"\n')
        self.assert_reported("base/slab.c:3: includes kernel/task.h: base may include base")

    def test_a_private_header_of_the_kernel_is_reported(self):
        self.write("sched/pump.c", '#include "kernel/task.h"\n')
        self.write("future/region_futures.c", '#include "kernel/layer.h"\n')
        self.assert_clean()
        self.write("future/region_futures.c", '#include "kernel/task.h"\n')
        self.assert_reported("future/region_futures.c:1: includes kernel/task.h: private to kernel and sched")
        self.write("future/region_futures.c", "")
        self.write("web/wasm/host.c", '#include "kernel/rt.h"\n')
        self.assert_reported("web/wasm/host.c:1: includes kernel/rt.h: private to kernel and sched")

    def test_an_upward_public_header_is_reported(self):
        self.write("kernel/task.c", "#include <ebb/sched.h>\n")
        self.assert_reported("kernel/task.c:1: includes ebb/sched.h: kernel may include base, kernel")

    def test_a_public_header_counts_as_its_layer(self):
        self.write("include/ebb/base.h", "#include <ebb/kernel.h>\n")
        self.assert_reported("include/ebb/base.h:1: includes ebb/kernel.h")

    def test_any_layer_may_include_a_public_table(self):
        self.write("base/slab.c", "#include <ebb/event.def>\n")
        self.assert_clean()

    def test_a_public_header_with_a_private_include_is_reported(self):
        self.write("include/ebb/kernel.h", '#include "base/slab.h"\n')
        self.assert_reported("include/ebb/kernel.h:1: includes base/slab.h")

    def test_the_header_of_all_layers_in_a_layer_is_reported(self):
        self.write("serve/api.c", '#  include "ebb/ebb.h"\n')
        self.assert_reported("serve/api.c:1: includes ebb/ebb.h")

    def test_a_host_header_in_a_pure_layer_is_reported(self):
        self.write("sched/wheel.c", "#include <stdio.h>\n")
        self.write("include/ebb/sched.h", "#include <time.h>\n")
        self.assert_reported("sched/wheel.c:1: includes stdio.h: sched is pure",
                             "include/ebb/sched.h:1: includes time.h: sched is pure")

    def test_a_host_header_above_the_pure_layers_is_clean(self):
        self.write("fiber/stack.c", "#include <sys/mman.h>\n")
        self.assert_clean()

    def test_web_stands_on_the_pure_layers_alone(self):
        self.write("web/wasm/host.c", '#include "web/wasm/host.h"\n#include "sched/pump.h"\n#include <string.h>\n')
        self.assert_clean()
        self.write("web/wasm/host.c", "#include <ebb/loop.h>\n")
        self.assert_reported("web/wasm/host.c:1: includes ebb/loop.h: web, and the files of lab that it takes, may include base, kernel, trace, sched")
        self.write("web/wasm/host.c", "#include <stdio.h>\n")
        self.assert_reported("web/wasm/host.c:1: includes stdio.h")

    def test_web_takes_scripts_replay_and_the_run_from_the_lab(self):
        self.write("web/lab/case.c", '#include "lab/lab.h"\n#include "lab/script.h"\n#include "lab/replay.h"\n'
                                       "#include <ebb/lab.h>\n")
        self.assert_clean()
        self.write("web/lab/case.c", '#include "lab/storm.h"\n')
        self.assert_reported("web/lab/case.c:1: includes lab/storm.h: web, and the files of lab that it takes, "
                             "may include base, kernel, trace, sched, machine, lang")

    def test_what_web_takes_from_the_lab_is_pure(self):
        self.write("lab/stop_everywhere.c", '#include "workflow/workflow.h"\n#include <stdio.h>\n')
        self.assert_clean()
        self.write("lab/script_parse.c", '#include "lab/script_op.h"\n#include "workflow/workflow.h"\n')
        self.write("lab/replay.h", "#include <stdio.h>\n")
        self.write("include/ebb/lab.h", "#include <ebb/workflow.h>\n")
        self.assert_reported("lab/script_parse.c:2: includes workflow/workflow.h",
                             "lab/replay.h:1: includes stdio.h",
                             "include/ebb/lab.h:1: includes ebb/workflow.h")

    def test_the_records_of_the_kernel_are_for_kernel_and_sched_alone(self):
        self.write("kernel/rt.h", "")
        self.write("kernel/record.h", '#include "kernel/rt.h"\n')
        self.write("kernel/wait.h", '#include "kernel/record.h"\n')
        self.write("kernel/names.h", "#include <stdint.h>\n")
        self.write("sched/pump.c", '#include "kernel/rt.h"\n#include "kernel/wait.h"\n')
        self.write("tests/test_rt.c", '#include "kernel/rt.h"\n')
        self.write("loop/clock.c", '#include "kernel/names.h"\n')
        self.assert_clean()
        self.write("loop/clock.c", '#include "kernel/rt.h"\n')
        self.write("trace/file.c", '#include "kernel/wait.h"\n')
        self.write("web/wasm/time.c", '#include "kernel/rt.h"\n')
        self.write("sched/waiters.h", '#include "kernel/wait.h"\n')
        self.write("future/await.c", '#include "sched/waiters.h"\n')
        self.assert_reported("loop/clock.c:1: includes kernel/rt.h: private to kernel and sched",
                             "trace/file.c:1: includes kernel/wait.h: private to kernel and sched",
                             "web/wasm/time.c:1: includes kernel/rt.h: private to kernel and sched",
                             "future/await.c:1: includes sched/waiters.h: it includes kernel/rt.h: only kernel and",
                             "4 violations")

    def test_a_retired_word_in_a_public_header_is_reported(self):
        self.write("docs/glossary.md", "# Glossary\n\n| steward | not in the table |\n\n## Retired words\n\n"
                                       "| retired | use |\n|---|---|\n| duty, duties | obligation |\n"
                                       "| calm | rate limit |\n| nest | handles |\n\n## More\n\n| task | fine |\n")
        self.write("include/ebb/kernel.h", "/* A task. Past it: ENHANCE_YOUR_CALM, calmly. The steward. */\n")
        self.write("kernel/task.c", "/* Comments nest. */\n")
        self.write("tests/kernel/task.c", "/* a duty */\n")
        self.assert_clean()
        self.write("include/ebb/kernel.h", "/* Duties of a task. */\nvoid ebb_duty_add(void);\n"
                                           "#define EBB_DUTY_MAX 1\n")
        self.assert_reported("include/ebb/kernel.h:1: duties is a retired word (docs/glossary.md): use obligation",
                             "include/ebb/kernel.h:2: duty is a retired word",
                             "include/ebb/kernel.h:3: duty is a retired word")
        self.write("include/ebb/kernel.h", "/* Masks nest. */\n")
        self.write("kernel/task.c", "\nint duty_of(void);\n")
        self.assert_reported("include/ebb/kernel.h:1: nest is a retired word", "kernel/task.c:2: duty is a retired word",
                             "2 violations")

    def test_web_is_below_nobody(self):
        self.write("cli/serve.c", '#include "web/wasm/host.h"\n')
        self.assert_reported("cli/serve.c:1: includes web/wasm/host.h")

    def test_a_path_with_dots_is_reported(self):
        self.write("base/slab.c", '#include "../kernel/task.h"\n')
        self.assert_reported("base/slab.c:1: includes ../kernel/task.h")

    def test_a_commented_include_is_clean(self):
        self.write("base/slab.c", '/*\n#include "kernel/task.h"\n*/\n')
        self.assert_clean()

    def test_a_comment_mark_in_a_string_hides_nothing(self):
        self.write("base/slab.c", 'char *s = "/*";\n#include "kernel/task.h"\n')
        self.assert_reported("base/slab.c:2: includes kernel/task.h")


if __name__ == "__main__":
    unittest.main()
