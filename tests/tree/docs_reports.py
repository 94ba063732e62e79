import unittest

from tree import TreeTest


class CheckDocs(TreeTest):
    script = "check-docs"

    def setUp(self):
        super().setUp()
        self.write("Makefile", "PREFIX := /usr\nall test:\n\ttrue\n")
        self.write("cli/main.c", 'static const char *verbs[] = { "trace" };\n')
        self.write("docs/kernel.md", "[up](../README.md#top) and `build/release/ebb trace x`\n")

    def test_a_page_in_order_is_clean(self):
        self.write("README.md", "[k](docs/kernel.md) [far](https://example.org/x)\n"
                                "```sh\n$ make -j2 test PREFIX=/x && ebb trace\n```\n"
                                "```c\nmake sense;\n```\nWe make sense of ebb waters.\n")
        self.assert_clean()

    def test_a_link_to_nothing_is_reported(self):
        self.write("README.md", "one\n[k](docs/gone.md#a)\n")
        self.assert_reported("README.md:2: link to docs/gone.md")

    def test_an_unknown_make_target_is_reported(self):
        self.write("README.md", "Type `make tset`.\n")
        self.assert_reported("README.md:1: make tset")

    def test_an_unknown_subcommand_is_reported(self):
        self.write("README.md", "```\n$ ebb trase x.ebb\n```\n")
        self.assert_reported("README.md:2: ebb trase")

    def test_a_readme_that_is_too_long_is_reported(self):
        self.write("README.md", "line\n" * 200)
        self.assert_clean()
        self.write("README.md", "line\n" * 201)
        self.assert_reported("README.md:201: it has 201 lines, and may have 200")

    def write_walk(self, count, *steps):
        self.write("README.md", "")
        self.write("sched/pump.c", "void pump(void) {\n    poll();\n}\n")
        self.write("web/cx.js", "class Cx { #end() {} }\n")
        self.write("docs/walk.md", "### Something (%d files)\n\n%s" % (count, "".join("%s\n" % s for s in steps)))

    def test_a_walk_in_order_is_clean(self):
        self.write_walk(2, "1. `sched/pump.c`: `pump` does it,", "   and `poll`.", "2. `web/cx.js`: `#end` ends.",
                        "3. `sched/pump.c`: `pump` again.")
        self.assert_clean()

    def test_a_file_of_a_walk_that_is_not_there_is_reported(self):
        self.write_walk(1, "1. `sched/pomp.c`: `pump` does it.")
        self.assert_reported("docs/walk.md:3: a walk names sched/pomp.c, which is not there")

    def test_a_function_that_is_not_in_its_file_is_reported(self):
        self.write_walk(2, "1. `sched/pump.c`: `pomp` does it,", "   and `pol`.", "2. `web/cx.js`: `#pump` ends.")
        self.assert_reported("docs/walk.md:3: a walk names pomp, which does not stand in sched/pump.c",
                             "docs/walk.md:3: a walk names pol,", "docs/walk.md:5: a walk names pump,")

    def test_a_file_twice_in_a_row_is_reported(self):
        self.write_walk(1, "1. `sched/pump.c`: `pump`.", "2. `sched/pump.c`: `poll`.")
        self.assert_reported("docs/walk.md:4: a walk names sched/pump.c twice in a row")

    def test_a_wrong_count_of_a_walk_is_reported(self):
        self.write_walk(2, "1. `sched/pump.c`: `pump`.")
        self.assert_reported("docs/walk.md:1: a walk says 2 files; it names 1")

    def write_header(self, *lines):
        self.write("README.md", "")
        self.write("include/ebb/kernel.h", "".join("%s\n" % line for line in lines))

    def test_a_function_that_a_page_or_example_names_is_clean(self):
        self.write_header("/* void ebb_gone(void); */", "void ebb_task_end(ebb_cx *cx,", "                  void (*ebb_fn)(void));",
                          "#define ebb_go(cx) ebb_go_site((cx))", "ebb_task ebb_go_site(ebb_cx *cx);",
                          "typedef void ebb_end_fn(int);")
        self.write("docs/kernel.md", "`ebb_task_end`\n")
        self.write("examples/go.c", "int main(void) { ebb_go(cx); }\n")
        self.assert_clean()

    def test_a_function_that_nothing_names_is_reported(self):
        self.write_header("/* a", " * comment */", "void ebb_task_end(ebb_cx *cx);", "#define ebb_go(cx) ebb_go_site((cx))")
        self.write("docs/api-0.2.md", "| `ebb_end` | `ebb_task_end` |\n")
        self.assert_reported("include/ebb/kernel.h:3: no page and no example names ebb_task_end",
                             "include/ebb/kernel.h:4: no page and no example names ebb_go")


if __name__ == "__main__":
    unittest.main()
