"""Compares figures of a model with an estimate by hand: each holds, or misses by as much as is recorded."""

import sys

TOLERANCE, SLACK = 0.10, 0.03


def off(got, read):
    """Relative deviation of `got` from the estimate `read`: a number, or a range (low, high), within which it is 0."""
    low, high = read if isinstance(read, tuple) else (read, read)
    return got / low - 1 if got < low else max(0, got / high - 1)


def judge(figures, misses, expected):
    """Judges `figures`, each (which, ours, theirs); there must be `expected` of them. `misses` has, by `which`, the
    deviation of those that are known to miss. Prints the result and ends the program, with 1 if there is a fault."""
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
