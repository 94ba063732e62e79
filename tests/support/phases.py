"""What a service of the command says when it stops."""
import re

PHASES = ("request", "drain", "finalize", "end")


def phases_of(errors):
    """The phases that were told of, in their order, and the rest of what was said."""
    line = re.compile(r"(?m)^ebb: (%s): .*\n" % "|".join(PHASES))
    return tuple(line.findall(errors)), line.sub("", errors)


def without_phases(errors):
    return phases_of(errors)[1]
