#!/usr/bin/env python3
"""What `make install` needs, what it installs, and that programs can use it, also from another prefix.

usage: test_install.py SOURCE_DIR
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SOURCE = Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
# All that `make install` may find: no Clang, no Python, no Node, no browser, and of libraries no cmocka.
TOOLS = ["make", "sh", "cmake", "ninja", "pkg-config", "cc", "gcc", "as", "ld", "ar", "ranlib", "nm", "strip"]
LIBRARIES = ["libuv", "jansson", "libssl", "libcrypto", "openssl", "libnghttp2", "sqlite3", "libpq"]
MAJOR, MINOR, PATCH = re.findall(r"^#define EBB_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)$",
                                 (SOURCE / "include/ebb/base.h").read_text(), re.MULTILINE)
VERSION = f"{MAJOR}.{MINOR}.{PATCH}"
SONAME = f"libebb.so.{MAJOR}.{MINOR}" if MAJOR == "0" else f"libebb.so.{MAJOR}"
C_SAYS = f"ebb {VERSION} exit 0 http 200\n"
CPP_SAYS = f"ebb {VERSION} naps 3 won 7 EBB_USER\n"
STRICT = ["-Wall", "-Wextra", "-pedantic", "-Werror"]


def run(*command, env=None):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, env=env, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{command} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def bare_environment(root):
    """A PATH and pkg-config files with the tools and libraries that are promised to be enough."""
    (root / "bin").mkdir()
    (root / "pc").mkdir()
    for tool in TOOLS:
        (root / "bin" / tool).symlink_to(shutil.which(tool))
    for name in LIBRARIES:
        file = Path(run("pkg-config", "--variable=pcfiledir", name).strip()) / f"{name}.pc"
        (root / "pc" / f"{name}.pc").symlink_to(file)
    return {"PATH": str(root / "bin"), "PKG_CONFIG_LIBDIR": str(root / "pc"), "LC_ALL": "C"}


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.root = Path(cls.temporary.name)
        first = cls.root / "first"
        (SOURCE / "build" / "install" / "CMakeCache.txt").unlink(missing_ok=True)  # it names tools of an earlier run
        run("make", "-C", SOURCE, "install", "DEPS=:", f"PREFIX={first}", env=bare_environment(cls.root))
        shutil.copytree(first, cls.root / "copy", symlinks=True)
        first.rename(cls.root / "moved")
        cls.prefixes = [cls.root / "copy", cls.root / "moved"]

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def setUp(self):
        self.use(self.prefixes[-1])

    def use(self, prefix):
        self.prefix = prefix
        self.lib = next(prefix.glob("**/libebb.a")).parent

    def flags(self, *options):
        env = dict(os.environ, PKG_CONFIG_PATH=str(self.lib / "pkgconfig"))
        return run("pkg-config", *options, "ebb", env=env).split()

    def build(self, compiler, source, flags, *options):
        program = self.root / "program"
        run(compiler, *options, HERE / source, "-o", program, *flags)
        return program

    def says(self, program):
        return run(program, env=dict(os.environ, LD_LIBRARY_PATH=str(self.lib)))

    def test_exports_the_public_functions_and_nothing_else(self):
        names = [line.split()[-1] for line in
                 run("nm", "-D", "--defined-only", self.lib / "libebb.so").splitlines()]
        self.assertEqual([n for n in names if not re.fullmatch(r"ebb_[a-z]\w*", n)], [])
        headers = "".join(h.read_text() for h in (self.prefix / "include/ebb").glob("*.h"))
        headers = re.sub(r"/\*.*?\*/|static inline[^{]*", "", headers, flags=re.DOTALL)
        declared = set(re.findall(r"^(?!typedef\b)\w[\w *]*?\b(ebb_\w+)\(", headers, re.MULTILINE))
        self.assertGreater(len(declared), 200)
        self.assertEqual(declared - set(names), set())

    def test_has_a_soname_with_the_version(self):
        dynamic = run("objdump", "-p", self.lib / "libebb.so")
        self.assertEqual(re.findall(r"SONAME\s+(\S+)", dynamic), [SONAME])
        self.assertTrue((self.lib / f"libebb.so.{VERSION}").is_file())
        self.assertTrue((self.lib / SONAME).is_symlink())

    def test_asserts_are_off(self):
        self.assertNotIn("__assert_fail", run("nm", "-D", self.lib / "libebb.so"))
        self.assertNotIn("__assert_fail", run("nm", self.lib / "libebb.a"))

    def test_the_command_needs_no_shared_libebb(self):
        self.assertNotIn("libebb", run("objdump", "-p", self.prefix / "bin/ebb"))
        self.assertRegex(run(self.prefix / "bin/ebb", "--version"), rf"^ebb {re.escape(VERSION)} ")

    def test_the_command_loads_programs_of_orchestrations(self):
        app = self.root / "app.so"
        run("cc", "-shared", "-fPIC", *STRICT, SOURCE / "examples/durable/app.c", "-o", app, *self.flags("--cflags"))
        ebb, store = self.prefix / "bin/ebb", ("--store", f"sqlite:{self.root}/orders.db")
        run(ebb, "durable", "start", "order", "--id", "order-7", *store)
        self.assertEqual(run(ebb, "durable", "replay", "order-7", "--load", app, *store),
                         "order-7: 0 turns, order version 1 does what is recorded\n")

    def test_the_readme_is_true(self):
        readme = (SOURCE / "README.md").read_text()
        make, cc = re.search(r"^```sh\n(make install.*?)^```$", readme, re.MULTILINE | re.DOTALL).group(1).splitlines()
        self.assertEqual(make.split("#")[0].split(), ["make", "install", "PREFIX=/usr/local"])  # as setUpClass, but elsewhere
        where = self.root / "readme"
        where.mkdir()
        shutil.copy(SOURCE / "examples/hello.c", where)
        env = dict(os.environ, PKG_CONFIG_PATH=str(self.lib / "pkgconfig"))
        run("sh", "-c", f"cd {where} && {cc}", env=env)
        self.assertIn("the shop is closed", self.says(where / "a.out"))
        cmake = re.search(r"^```cmake\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL).group(1)
        (where / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.25)\nproject(hello C)\n"
                                              "add_executable(hello hello.c)\n" + cmake)
        run("cmake", "-G", "Ninja", "-S", where, "-B", where / "build", f"-DCMAKE_PREFIX_PATH={self.prefix}")
        run("cmake", "--build", where / "build")
        self.assertIn("the shop is closed", self.says(where / "build/hello"))

    def test_version_is_the_same_everywhere(self):
        self.assertEqual(self.flags("--modversion"), [VERSION])
        self.assertIn(f'set(PACKAGE_VERSION "{VERSION}")',
                      (self.lib / "cmake/ebb/ebbConfigVersion.cmake").read_text())

    def test_names_no_place_of_the_build(self):
        for file in [*self.lib.glob("**/*.cmake"), *self.lib.glob("**/*.pc")]:
            for place in (SOURCE, self.root):
                self.assertNotIn(str(place), file.read_text(), file)

    def test_man_pages_and_completions_are_installed(self):
        for prefix in self.prefixes:
            page = prefix / "share/man/man1/ebb-serve.1"
            self.assertIn(f'"ebb {VERSION}"', page.read_text())
            for name in ("bash-completion/completions/ebb", "zsh/vendor-completions/_ebb",
                         "fish/vendor_completions.d/ebb.fish"):
                self.assertTrue((prefix / "share" / name).is_file(), name)

    def made(self, template):
        """A project that the installed command has made, and the environment that finds the installed library."""
        project = self.root / f"{template}-{self.prefix.name}"
        run(self.prefix / "bin/ebb", "init", "--template", template, project)
        env = dict(os.environ, PKG_CONFIG_PATH=str(self.lib / "pkgconfig"), CFLAGS="-O1 -Werror",
                   PATH=f"{self.prefix / 'bin'}:{os.environ['PATH']}")
        return project, env

    def test_a_project_of_each_template_builds_and_its_test_passes(self):
        for template in ("service", "durable"):
            with self.subTest(template):
                project, env = self.made(template)
                run("make", "-C", project, "all", "test", env=env)

    def test_the_test_of_a_project_can_fail(self):
        for template, file, was, now in (("service", "src/service.c", "hello, ", "bye, "),
                                         ("durable", "src/app.c", '"pay-back", in', '"send", in')):
            with self.subTest(template):
                self.use(self.prefixes[0])
                project, env = self.made(template)
                text = (project / file).read_text()
                self.assertIn(was, text)
                (project / file).write_text(text.replace(was, now))
                with self.assertRaises(AssertionError):
                    run("make", "-C", project, "test", env=env)

    def test_pkg_config_links_the_shared_library(self):
        for prefix in self.prefixes:
            with self.subTest(prefix.name):
                self.use(prefix)
                program = self.build("cc", "consumer.c", self.flags("--cflags", "--libs"), "-std=c11", *STRICT)
                self.assertIn(SONAME, run("objdump", "-p", program))
                self.assertEqual(self.says(program), C_SAYS)

    def test_pkg_config_links_the_static_library(self):
        for prefix in self.prefixes:
            with self.subTest(prefix.name):
                self.use(prefix)
                # Not all distributions have static libraries of what Ebb uses; of Ebb itself we do.
                flags = ["-l:libebb.a" if f == "-lebb" else f
                         for f in self.flags("--static", "--cflags", "--libs")]
                program = self.build("cc", "consumer.c", flags, "-std=c11", *STRICT)
                self.assertNotIn("libebb", run("objdump", "-p", program))
                self.assertEqual(self.says(program), C_SAYS)

    def test_cmake_finds_both_libraries(self):
        for prefix in self.prefixes:
            with self.subTest(prefix.name):
                self.use(prefix)
                build = self.root / f"cmake-{prefix.name}"
                run("cmake", "-G", "Ninja", "-S", HERE, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}",
                    f"-DEBB_WANTED={MAJOR}.{MINOR}")
                run("cmake", "--build", build)
                for name, uses in (("with_static", False), ("with_shared", True)):
                    self.assertEqual(SONAME in run("objdump", "-p", build / name), uses)
                    self.assertEqual(self.says(build / name), C_SAYS)

    def test_cmake_refuses_another_minor_version(self):
        with self.assertRaisesRegex(AssertionError, r"compatible\s+with requested version"):
            run("cmake", "-G", "Ninja", "-S", HERE, "-B", self.root / "other",
                f"-DCMAKE_PREFIX_PATH={self.prefix}", f"-DEBB_WANTED={MAJOR}.{int(MINOR) + 1}")

    def test_headers_are_cpp_too(self):
        compilers = [c for c in ("g++", "clang++", "clang++-14") if shutil.which(c)]
        if not compilers:
            self.skipTest("no C++ compiler")
        for compiler in compilers:
            # Designated initializers are C++20's; that all other fields are zero is what they are for.
            for standard, more in (("c++17", []), ("c++20", ["-Wno-missing-field-initializers"])):
                with self.subTest(f"{compiler} {standard}"):
                    program = self.build(compiler, "consumer.cpp", self.flags("--cflags", "--libs"),
                                         f"-std={standard}", *STRICT, *more)
                    self.assertEqual(self.says(program), CPP_SAYS)


if __name__ == "__main__":
    unittest.main(verbosity=2)
