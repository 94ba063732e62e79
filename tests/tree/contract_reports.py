"""The check of tests/contract.tsv reports what is wrong. usage: contract_reports.py NAMES"""
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

from tree import TreeTest

REPOSITORY = Path(__file__).resolve().parents[2]
NAMES = ""


class CheckContract(TreeTest):
    script = "../tests/tree/check_contract.py"

    @classmethod
    def setUpClass(cls):
        """One copy of the tree for all tests, which put back what they change: it is many files."""
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.copy = Path(folder.name)
        for part in ("tests", "docs", "fixtures", "web/ebb-web/test"):
            shutil.copytree(REPOSITORY / part, cls.copy / part)

    def setUp(self):
        self.root = self.copy
        self.arguments = (NAMES,)
        self.table = self.root / "tests" / "contract.tsv"
        for name in ("contract.tsv", "contract_ids.txt"):
            shutil.copy(REPOSITORY / "tests" / name, self.root / "tests" / name)
        self.rows = self.table.read_text(encoding="utf-8").splitlines()

    def change(self, name, column, value):
        for i, row in enumerate(self.rows):
            cells = row.split("\t")
            if cells[0] == name:
                cells[column] = value
                self.rows[i] = "\t".join(cells)
        self.table.write_text("\n".join(self.rows) + "\n", encoding="utf-8")

    def test_the_table_is_clean(self):
        self.assert_clean()

    def test_a_rule_without_a_row_is_reported(self):
        self.rows = [row for row in self.rows if not row.startswith("B3\t")]
        self.change("", 0, "")
        self.assert_reported("no row for B3")

    def test_an_id_without_a_row_and_an_id_that_stands_twice_are_reported(self):
        ids = self.root / "tests" / "contract_ids.txt"
        ids.write_text(ids.read_text(encoding="utf-8") + "# more\nFR-10\nFR-1\n", encoding="utf-8")
        self.assert_reported("no row for FR-10", "contract_ids.txt: FR-1 stands there twice")

    def test_a_table_without_its_list_of_ids_is_reported(self):
        (self.root / "tests" / "contract_ids.txt").unlink()
        self.assert_reported("FR-1: not a rule")

    def test_what_is_overridden_without_saying_so_is_reported(self):
        self.change("B3", 3, "docs/contract.md#task")
        self.assert_reported("B3: overridden, but 'docs/contract.md#task' is no heading that says so")

    def test_what_is_deferred_without_saying_so_is_reported(self):
        self.change("B3", 2, "deferred")
        self.assert_reported("B3: deferred, but 'docs/contract.md#")

    def test_a_second_row_and_an_unknown_one_are_reported(self):
        self.rows.append(self.rows[1])
        self.rows.append(self.rows[1].replace("contract.id", "B7"))
        self.change("", 0, "")
        self.assert_reported("contract.id: a second row, the first is in line 2", "B7: not a rule")

    def test_another_ruling_is_reported(self):
        self.change("B3", 2, "maybe")
        self.assert_reported("B3: ruling 'maybe'")

    def test_a_place_that_is_not_there_is_reported(self):
        self.change("B3", 3, "docs/contract.md#nowhere")
        self.change("B4", 3, "docs/gone.md#task")
        self.assert_reported("B3: where: 'docs/contract.md' has no heading 'nowhere'",
                             "B4: where: 'docs/gone.md'")

    def test_tests_that_are_not_there_are_reported(self):
        for test, reason in (("fixture:cancel.task.gone", "no such fixture"), ("ctest:gone", "no such test"),
                             ("lab/gone.c:a", "no such file"), ("lab/script.c:gone", "no such function"),
                             ("gone", "expected fixture:"), ("", "no test")):
            self.change("T3", 4, test)
            self.assert_reported("T3: ", reason)

    def test_tests_are_known_by_the_list_of_names(self):
        self.write("names.txt", Path(NAMES).read_text(encoding="utf-8") + "own.test\n")
        self.addCleanup((self.root / "names.txt").unlink)
        self.arguments = (str(self.root / "names.txt"),)
        self.change("T3", 4, "ctest:own.test")
        self.assert_clean()

    def test_a_function_that_is_not_registered_is_reported(self):
        self.write("tests/lab/forgotten.c", "static void it_holds(void **state) {\n}\n")
        self.addCleanup((self.root / "tests/lab/forgotten.c").unlink)
        self.change("T3", 4, "lab/forgotten.c:it_holds")
        self.assert_reported("T3: lab/forgotten.c:it_holds: the function is never registered")

    def test_a_fixture_that_goes_is_noticed(self):
        name = "fixtures/cancel/cancel.task.masked_defers_ack.json"
        (self.root / name).unlink()
        self.addCleanup(shutil.copy, REPOSITORY / name, self.root / name)
        self.assert_reported("fixture:cancel.task.masked_defers_ack: no such fixture")

    def test_a_broken_head_is_reported(self):
        self.rows[0] = "id\ttest"
        self.change("", 0, "")
        self.assert_reported("contract.tsv:1: expected the columns")


if __name__ == "__main__":
    NAMES = sys.argv[1]
    unittest.main(argv=sys.argv[:1])
