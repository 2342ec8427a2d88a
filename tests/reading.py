"""Figures of a model beside those that somebody read: which hold, and which miss by as much as is known."""

import sys

TOLERANCE, SLACK = 0.10, 0.03


def off(got, read):
    """By how much of what was read; a range counts as one."""
    low, high = read if isinstance(read, tuple) else (read, read)
    return got / low - 1 if got < low else max(0, got / high - 1)


def judge(figures, misses, expected):
    """Of (which, ours, theirs); `misses` says of some by how much they miss. Ends the program."""
    compared, faults = 0, []
    for which, ours, theirs in figures:
        compared, by = compared + 1, off(ours, theirs)
        if "--table" in sys.argv:
            print(f"{', '.join(which):28} {ours:7.2f}  read {theirs!s:14} {by:+5.0%}{'' if abs(by) <= TOLERANCE else '  misses'}")
        known = misses.get(which)
        if known is None and abs(by) > TOLERANCE:
            faults.append(f"{', '.join(which)}: {ours:.2f} where {theirs} was read, {by:+.0%}")
        elif known is not None and abs(by - known) > SLACK:
            faults.append(f"{', '.join(which)}: misses by {by:+.0%}, and is said to miss by {known:+.0%}")
    if compared != expected:
        faults.append(f"{compared} figures were compared")
    print(f"{compared - len(misses)} figures of {compared} hold, {len(misses)} miss as stated" if not faults else "\n".join(faults))
    sys.exit(bool(faults))
