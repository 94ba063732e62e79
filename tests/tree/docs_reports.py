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


if __name__ == "__main__":
    unittest.main()
