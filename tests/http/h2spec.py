#!/usr/bin/env python3
"""Runs h2spec against the server of the HTTP tests, strict, in plain text and over TLS.

usage: h2spec.py SERVER H2SPEC [RUNS]

Every test of every run has to pass; none may be skipped. RUNS is 1 if it is not said.
"""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from http_world import Server, certificate

PATH = "/p/hello"
RUN_S = 300


def run(h2spec, server, *options):
    """What it says, and whether all is well."""
    done = subprocess.run([h2spec, "-h", "127.0.0.1", "-p", str(server.port), "-P", PATH, "-S", *options],
                          capture_output=True, text=True, timeout=RUN_S, check=False)
    told = re.search(r"(\d+) tests, (\d+) passed, (\d+) skipped, (\d+) failed", done.stdout)
    well = done.returncode == 0 and told is not None and told[1] == told[2] and int(told[1]) > 100
    return (told[0] if told else done.stderr.strip()), well, done.stdout


def main():
    program, h2spec, runs = sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 1
    failed = False
    with tempfile.TemporaryDirectory() as directory:
        ways = {"plain text": ((), ()), "TLS": (("--tls", *certificate(Path(directory))), ("-t", "-k"))}
        for name, (arguments, options) in ways.items():
            server = Server(program, "--quiet", *arguments)
            try:
                for i in range(runs):
                    told, well, said = run(h2spec, server, *options)
                    print("h2spec -S, %s, run %d of %d: %s" % (name, i + 1, runs, told), flush=True)
                    failed = failed or not well
                    if not well:
                        print(said[said.find("Failures:"):])
                server.stop()
            finally:
                server.kill()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
