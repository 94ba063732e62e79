#!/usr/bin/env python3
"""The tables of the commands' help: they say what the commands take, and man pages and completions are made of them.

usage: help.py EBB [TEST...]
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

EBB = Path(sys.argv.pop(1)).resolve()
SOURCES = Path(__file__).resolve().parents[2] / "cli"
REFUSED = r"(unknown option|unexpected argument|has no option|unknown command) '%s'"
# Whose options stand in a file, if its name does not say so.
WHOSE = {"daemon": ["serve"], "lang": ["check", "fmt"], "main": []}
VALUES = {"N": "1", "JSON": "{}", "TIME": "1h", "NAME=COMMAND": "a=b", "ADDRESS:PORT": "127.0.0.1:0",
          "DEPTH": "1", "URL": "sqlite:nowhere/at.db"}


def ebb(*words, **more):
    return subprocess.run([EBB, *words], capture_output=True, text=True, timeout=60, check=False,
                          stdin=subprocess.DEVNULL, **more)


def names_of_commands():
    return re.findall(r"^  ([a-z]+) ", ebb("help").stdout, re.MULTILINE)


def section(text, title):
    match = re.search(rf"^{title}:\n((?:  .*\n)+)", text, re.MULTILINE)
    return match.group(1) if match else ""


class Command:
    """What --help says that a command takes."""

    def __init__(self, name):
        self.name = name
        self.text = ebb(name, "--help").stdout
        self.verbs = re.findall(r"^  ([a-z]\S*)", section(self.text, "commands"), re.MULTILINE)
        self.options = dict(re.findall(r"^  (--?[a-z][a-z-]*)(?: (\S+))?", section(self.text, "options"), re.MULTILINE))

    def of_verb(self, verb):
        """The options of a verb, from the usage or, if there are many verbs, from the list of commands."""
        many = f"usage: ebb {self.name} COMMAND ..." in self.text
        begin = rf"^  {verb}\b" if many else rf"^(?:usage:|      ) ebb {self.name} {verb}\b"
        shown = re.search(rf"{begin}.*\n(?:(?: {{4,5}}| {{11}})\S.*\n)*", self.text, re.MULTILINE).group(0)
        if many:
            shown += re.search(r"usage: .*\n(?: {11}\S.*\n)*", self.text).group(0)
        return {name for name in re.findall(r"(?<![\w-])--?[a-z][a-z-]*", shown) if name in self.options}


class Tables(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.commands = [Command(name) for name in names_of_commands()]

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def refuses(self, words, option):
        done = ebb(*words, cwd=self.temporary.name)
        return done.returncode == 2 and re.search(REFUSED % re.escape(option), done.stderr) is not None

    def takes(self, command, verb, option, value):
        """A second option that nobody has keeps the command from doing anything."""
        words = [command.name, *([verb] if verb else []), option]
        if value:
            words.append(VALUES.get(value, value.split("|")[0]))
        return not self.refuses([*words, "--no-such-option"], option)

    def test_every_command_shows_its_help(self):
        self.assertGreater(len(self.commands), 15)
        for c in self.commands:
            with self.subTest(c.name):
                self.assertTrue(c.text.startswith(f"usage: ebb {c.name}"), c.text)
                self.assertEqual(ebb("help", c.name).stdout, c.text)
                self.assertEqual(ebb(c.name, "-h").stdout, c.text)
                self.assertIn("\nexit codes:\n", c.text)
                text = c.text.split("\nexamples:\n")[0]
                self.assertEqual([line for line in text.splitlines() if len(line) > 80], [])
                self.assertEqual([line for line in text.splitlines() if line != line.rstrip()], [])

    def test_every_option_of_a_table_is_taken(self):
        for c in self.commands:
            for verb in c.verbs or [None]:
                for option in c.of_verb(verb) if verb else c.options:
                    with self.subTest(f"{c.name} {verb} {option}"):
                        self.assertTrue(self.takes(c, verb, option, c.options[option]))

    def test_every_option_in_the_sources_is_in_the_table(self):
        tables = {c.name: c.options for c in self.commands}
        for path in SOURCES.glob("*.c"):
            stem = path.stem.split("_")[0]
            for found in re.findall(r'strcmp\(.*?"(--[a-z-]+)"|[{ ]"(--[a-z-]+)"', path.read_text()):
                option = found[0] or found[1]
                if option not in ("--help", "--version"):
                    known = {name for whose in WHOSE.get(stem, [stem]) for name in tables[whose]}
                    self.assertIn(option, known, path.name)

    def test_the_options_of_the_daemon_are_in_the_table(self):
        """It knows them without dashes, since a file may have them too."""
        serve = next(c for c in self.commands if c.name == "serve")
        names = re.findall(r'^    \{"([a-z-]+)", (?:0|offsetof)', (SOURCES / "daemon_args.c").read_text(), re.MULTILINE)
        self.assertEqual({f"--{name}" for name in names}, set(serve.options))

    def test_the_verbs_of_durable_take_what_their_table_says(self):
        durable = next(c for c in self.commands if c.name == "durable")
        bits = dict(re.findall(r'^    \{"(--[a-z-]+)", (\w+),', (SOURCES / "durable_args.c").read_text(), re.MULTILINE))
        rows = re.findall(r'^    \{"([a-z]+)", \d, \d,\s+([\w| \n]+?),\s+(?:READS|WRITES|CREATES)',
                          (SOURCES / "durable.c").read_text(), re.MULTILINE)
        self.assertEqual({verb for verb, _ in rows}, set(durable.verbs))
        for verb, takes in rows:
            takes = {*re.split(r"[|\s]+", takes), "0"}
            self.assertEqual(durable.of_verb(verb), {name for name, bit in bits.items() if bit in takes}, verb)

    def test_every_verb_is_known(self):
        for c in self.commands:
            for verb in c.verbs:
                with self.subTest(f"{c.name} {verb}"):
                    done = ebb(c.name, verb, "--no-such-option", cwd=self.temporary.name)
                    self.assertNotRegex(done.stderr, rf"(unknown|no) (\w+ )?command '{verb}'")
                    self.assertEqual(done.returncode, 2, done.stderr)


class Command_help(unittest.TestCase):
    def refused(self, message, *words, **more):
        done = ebb("help", *words, **more)
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertIn(message, done.stderr)

    def test_wrong_arguments(self):
        self.refused("unknown command 'dance'", "dance")
        self.refused("--completion takes bash, zsh or fish, not 'tcsh'", "--completion", "tcsh")
        self.refused("--write needs a value", "--write")
        self.refused("unexpected argument 'b'", "--write", "a", "b")
        self.refused("can't write /dev/null/man/man1/ebb.1: Not a directory", "--write", "/dev/null")
        self.refused("can't write", "--write", "/" + "x" * 5000)
        self.refused("SOURCE_DATE_EPOCH takes a whole number", "--write", "/dev/null",
                     env=dict(os.environ, SOURCE_DATE_EPOCH="soon"))


class Written(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.root = Path(cls.temporary.name) / "share"
        done = ebb("help", "--write", cls.root, env=dict(os.environ, SOURCE_DATE_EPOCH="86400"))
        assert done.returncode == 0 and done.stdout == "", done.stderr
        cls.bash = cls.root / "bash-completion/completions/ebb"

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def silent(self, *command):
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_there_is_a_page_for_each_command(self):
        pages = {path.name for path in (self.root / "man/man1").iterdir()}
        self.assertEqual(pages, {"ebb.1"} | {f"ebb-{name}.1" for name in names_of_commands()})
        for path in (self.root / "man/man1").iterdir():
            self.assertIn(" 1 1970-01-02 ", path.read_text())

    def test_no_formatter_has_a_warning(self):
        pages = sorted((self.root / "man/man1").iterdir())
        self.silent("mandoc", "-T", "lint", "-W", "warning", *pages)
        for page in pages:
            with self.subTest(page.name):
                self.silent("groff", "-ww", "-man", "-Tutf8", "-z", page)

    def test_a_page_says_what_help_says(self):
        page = subprocess.run(["mandoc", "-T", "ascii", self.root / "man/man1/ebb-serve.1"], capture_output=True,
                              text=True, check=True).stdout
        plain = " ".join(re.sub(".\b", "", page).split())
        text = Command("serve").text
        for option in Command("serve").options:
            self.assertIn(option, plain)
        wanted = re.search(r"--dir DIR\s+((?:.*\n)+?)  --", section(text, "options")).group(1)
        self.assertIn(" ".join(wanted.split()), plain)

    def complete(self, *words, cwd=None):
        """What bash offers for the last word."""
        script = 'source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _ebb; printf "%s\\n" "${COMPREPLY[@]}"'
        done = subprocess.run(["bash", "-u", "-c", script, self.bash, "ebb", *words], capture_output=True, text=True,
                              timeout=60, check=True, cwd=cwd)
        self.assertEqual(done.stderr, "")
        return done.stdout.split("\n")[:-1]

    def test_bash_completes_words(self):
        self.assertEqual(self.complete("")[:-2], names_of_commands())
        self.assertEqual(self.complete("tr"), ["trace"])
        self.assertEqual(self.complete("durable", "re"), ["replay", "reset", "resume"])
        self.assertEqual(self.complete("durable", "replay", "--"), ["--store", "--json", "--load", "--help"])
        self.assertEqual(self.complete("durable", "list", "--state", "S"), ["Suspended"])
        self.assertEqual(self.complete("durable", "list", "--state", "Failed", "--mo"), ["--most"])
        self.assertEqual(self.complete("trace", "export", "--format", ""), ["jsonl", "chrome"])
        self.assertEqual(self.complete("serve", "--listen", ""), [""])
        self.assertEqual(self.complete("dance", ""), [""])

    def test_bash_completes_paths(self):
        directory = Path(self.temporary.name) / "paths"
        directory.mkdir()
        (directory / "a b.trace").touch()
        (directory / "app.so").touch()
        self.assertEqual(self.complete("trace", "show", "a ", cwd=directory), ["a b.trace"])
        self.assertEqual(self.complete("serve", "--load", "ap", cwd=directory), ["app.so"])
        self.assertEqual(self.complete("serve", "ap", cwd=directory), [""])

    def test_the_other_shells_can_read_theirs(self):
        for shell, name in (("zsh", "zsh/vendor-completions/_ebb"), ("fish", "fish/vendor_completions.d/ebb.fish")):
            self.assertEqual(ebb("help", "--completion", shell).stdout, (self.root / name).read_text())
            if shutil.which(shell):
                self.silent(shell, "-n", self.root / name)

    @unittest.skipUnless(shutil.which("fish"), "no fish")
    def test_fish_completes_words(self):
        def complete(line):
            script = f"source {self.root}/fish/vendor_completions.d/ebb.fish; complete -C '{line}'"
            done = subprocess.run(["fish", "--no-config", "-c", script], capture_output=True, text=True, timeout=60,
                                  check=True, cwd=self.root, env=dict(os.environ, HOME=self.temporary.name))
            return [line.split("\t")[0] for line in done.stdout.splitlines()]
        self.assertEqual(complete("ebb tra"), ["trace"])
        self.assertEqual(complete("ebb durable re"), ["replay", "reset", "resume"])
        self.assertEqual(complete("ebb durable list --mo"), ["--most"])
        self.assertEqual(complete("ebb lab run --qu"), [])
        self.assertEqual(complete("ebb trace export --format c"), ["chrome"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
