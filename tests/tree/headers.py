#!/usr/bin/env python3
"""Each public header compiles alone, as strict C11 and C++, with GCC and, where it is there, Clang.

usage: headers.py ROOT
"""
import shutil
import subprocess
import sys
from pathlib import Path

STRICT = ["-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only"]
LANGUAGES = {"gcc": ["-x", "c", "-std=c11", "-Wconversion"], "g++": ["-x", "c++", "-std=c++17"],
             "clang-14": ["-x", "c", "-std=c11", "-Wconversion"]}


def main():
    include = Path(sys.argv[1]) / "include"
    headers = sorted((include / "ebb").glob("*.h"))
    checked = failed = 0
    for compiler, options in LANGUAGES.items():
        if shutil.which(compiler) is None:
            continue
        for header in headers:
            done = subprocess.run([compiler, *options, *STRICT, f"-I{include}", "-"], check=False, text=True,
                                  input=f"#include <ebb/{header.name}>\nint main(void) {{ return 0; }}\n", capture_output=True)
            checked += 1
            if done.returncode != 0:
                failed += 1
                print(f"{compiler}: ebb/{header.name}\n{done.stderr}")
    print(f"{checked} headers, {failed} wrong")
    return 1 if failed or not headers or not checked else 0


if __name__ == "__main__":
    sys.exit(main())
