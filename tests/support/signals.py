"""Signals to programs that tests have started."""
import functools
import time
from pathlib import Path

PATIENCE_S = 5


@functools.lru_cache(maxsize=None)
def has_tsan(program):
    return b"__tsan_init" in Path(program).read_bytes()


def is_asleep(process):
    """It waits for something, and not for a processor; or it has ended."""
    try:
        stat = Path("/proc/%d/stat" % process.pid).read_text(encoding="latin-1")
    except FileNotFoundError:
        return True
    return stat.rpartition(")")[2].split()[0] != "R"


def tell(process, signum):
    """Sends a signal. ThreadSanitizer keeps a signal for whoever runs when it comes, a fiber too, and gives it to that one
    when it runs again, which may be never: there the program may not be busy."""
    end = time.monotonic() + PATIENCE_S
    while has_tsan(process.args[0]) and not is_asleep(process) and time.monotonic() < end:
        time.sleep(0.001)
    process.send_signal(signum)
