#!/usr/bin/env python3
"""The Debian packages agree with the tree; `make deb` builds them.

usage: test_debian.py SOURCE_DIR
"""
import re
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

SOURCE = Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else Path(__file__).resolve().parents[2]
VERSION = re.findall(r"^#define EBB_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)$", (SOURCE / "include/ebb/base.h").read_text(),
                     re.MULTILINE)


def text(name):
    return (SOURCE / name).read_text()


class Debian(unittest.TestCase):
    def test_the_changelog_has_the_version_of_the_headers(self):
        self.assertTrue(text("debian/changelog").startswith(f"ebb ({'.'.join(VERSION)}) "))

    def test_the_package_of_the_library_has_the_name_of_its_soname(self):
        soname = ".".join(VERSION[:2]) if VERSION[0] == "0" else VERSION[0]
        self.assertIn(f"\nPackage: libebb{soname}\n", text("debian/control"))
        self.assertTrue((SOURCE / f"debian/libebb{soname}.install").is_file())

    def test_it_is_built_with_what_make_install_needs(self):
        wanted = re.search(r"build \| install\) echo ((?:.|\n)*?);;", text("scripts/deps")).group(1).split()
        wanted = {name for name in wanted if name not in ("\\", "gcc", "libc6-dev")}  # build-essential has these
        found = re.search(r"^Build-Depends: ((?:.|\n )*)", text("debian/control"), re.MULTILINE).group(1)
        found = {name.split(" (")[0].strip() for name in found.split(",")}
        self.assertEqual(found, wanted | {"debhelper-compat"})

    def test_the_development_package_brings_the_libraries(self):
        needed = {name for name in re.findall(r"lib[a-z0-9-]+-dev\b", text("scripts/deps").split("test)")[0])}
        block = text("debian/control").split("Package: libebb-dev")[1].split("Description")[0]
        self.assertEqual(set(re.findall(r"lib[a-z0-9-]+-dev\b", block)), needed - {"libc6-dev"})

    def test_the_licence_is_the_tree_s(self):
        packed = " ".join(text("debian/copyright").replace(" .\n", " ").split())
        self.assertIn(" ".join(text("LICENSE").split("\n", 4)[4].split()), packed)

    def test_the_unit_starts_what_is_packaged(self):
        self.assertIn("\nExecStart=/usr/bin/ebb serve ", text("share/ebb.service"))
        self.assertIn(" --config /etc/ebb/serve.conf", text("share/ebb.service"))
        for name in ("etc/ebb/serve.conf", "lib/systemd/system/ebb.service"):
            self.assertIn(f" debian/ebb/{name}\n", text("debian/rules"))

    def test_the_image_runs_what_is_installed(self):
        image = text("Containerfile")
        self.assertIn("\nUSER ebb\n", image)
        self.assertIn("\nSTOPSIGNAL SIGTERM\n", image)
        depends = {line for line in re.findall(r"lib[a-z0-9.-]+\d", image.split("AS build")[1].split("\nFROM ")[1])}
        self.assertEqual(depends, {"libuv1", "libjansson4", "libssl3", "libnghttp2-14", "libhttp-parser2.9",
                                   "libsqlite3-0", "libpq5"})

    @unittest.skipUnless(shutil.which("dpkg-parsechangelog"), "no dpkg-dev")
    def test_dpkg_can_read_the_changelog(self):
        done = subprocess.run(["dpkg-parsechangelog", "-l", SOURCE / "debian/changelog", "-S", "Version"],
                              capture_output=True, text=True, check=True)
        self.assertEqual((done.stdout.strip(), done.stderr), (".".join(VERSION), ""))


if __name__ == "__main__":
    unittest.main(verbosity=2)
