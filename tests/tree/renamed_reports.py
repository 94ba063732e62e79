"""The check of tests/renamed.tsv reports what is wrong."""
import unittest

from tree import TreeTest


class CheckRenamed(TreeTest):
    script = "../tests/tree/check_renamed.py"

    def setUp(self):
        super().setUp()
        self.arguments = (str(self.root / "names.txt"),)
        self.rows = ["old\tnew"] + ["t%d\tkernel.t%d" % (i, i) for i in range(285)]
        self.names = ["kernel.t%d" % i for i in range(285)]

    def put(self):
        self.write("tests/renamed.tsv", "\n".join(self.rows) + "\n")
        self.write("names.txt", "\n".join(self.names) + "\n")

    def test_a_whole_table_is_clean(self):
        self.rows.append("t0\tkernel.t0_second_part")
        self.names.append("kernel.t0_second_part")
        self.put()
        self.assert_clean()

    def test_a_test_that_is_gone_is_reported(self):
        self.names.remove("kernel.t7")
        self.put()
        self.assert_reported("renamed.tsv:9: t7 is now kernel.t7, and there is no such test")

    def test_an_old_name_that_is_missing_is_reported(self):
        self.rows.remove("t7\tkernel.t7")
        self.put()
        self.assert_reported("284 old names, expected 285")

    def test_a_row_that_stands_twice_and_a_broken_one_are_reported(self):
        self.rows += ["t7\tkernel.t7", "t8"]
        self.put()
        self.assert_reported("t7, kernel.t7 stands there twice", "1 columns, expected old, new")

    def test_a_broken_head_is_reported(self):
        self.rows[0] = "was\tis"
        self.put()
        self.assert_reported("expected the columns old, new")


if __name__ == "__main__":
    unittest.main()
