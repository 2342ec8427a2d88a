"""Predictions for llama-2-7b with trees of 60 nodes, made before anything was measured, and printed beside what is
measured. The figures of an H200 are those of tools/dev/README.md; an H100's follow from them by the bandwidths of the
two memories."""

# The predictions: {(device's name, bench): {figure: (from, to)}}.
PREDICTED = {
    ("H100", "f16"): {"T(1), ms": (4.6, 5.2), "T(60) / T(1)": (1.1, 1.3), "a level, us": (170, 210), "host gap, us": (50, 70)},
    ("H100", "q8_0"): {"T(1), ms": (2.5, 2.9), "T(60) / T(1)": (1.6, 1.9), "a level, us": (170, 210), "host gap, us": (50, 70)},
    ("H200", "f16"): {"T(1), ms": (3.3, 3.7), "T(60) / T(1)": (1.1, 1.4), "a level, us": (135, 165), "host gap, us": (50, 70)},
    ("H200", "q8_0"): {"T(1), ms": (1.9, 2.2), "T(60) / T(1)": (1.9, 2.4), "a level, us": (135, 165), "host gap, us": (50, 70)},
}
SHARE = (80, 97)        # percent of a copy's rate, for a pass of one row, on any GPU
EARLY = (0.99, 1.08)    # a pass of one row without early launches over one with them
LOOK = "outside: compare early launches on and off, then the carve-out, then the first wait of a ring"


def seconds_of(bench):
    return {one["rows"]: one["median_seconds"] for one in bench.get("passes", [])}


def figures_of(bench):
    """{figure: value} of an object of `aerie bench --json`, for the figures that it has."""
    seconds, found = seconds_of(bench), {}
    if 1 in seconds:
        found["T(1), ms"] = 1e3 * seconds[1]
        if bench.get("copy_gb_per_s") and bench.get("pass_bytes"):
            found["% of a copy"] = 100e-9 * bench["pass_bytes"] / seconds[1] / bench["copy_gb_per_s"]
    if 1 in seconds and 60 in seconds:
        found["T(60) / T(1)"] = seconds[60] / seconds[1]
    level = bench.get("draft_level_seconds")
    if level:
        found["a level, us"] = 1e6 * level
    for cycle in bench.get("cycles") or []:
        sizes = str(cycle.get("tree", "")).split(",")
        if level and 60 in seconds and len(sizes) == 3:
            found["host gap, us"] = 1e6 * (cycle["seconds"] - seconds[60] - int(sizes[1]) * level)
            break
    return found


def ranges_for(description, shape, weights):
    ranges = {"% of a copy": SHARE}
    for (device, its), figures in PREDICTED.items():
        if device in description and its == weights and shape == "llama-2-7b":
            ranges.update(figures)
    return ranges


def beside(figures, ranges):
    """A line for each figure: its prediction, the measured value, and whether this is as predicted."""
    lines, outside = [], False
    for figure, value in figures.items():
        if figure not in ranges:
            lines.append(f"{figure:14} {'no prediction':>18}   measured {value:8.2f}")
            continue
        low, high = ranges[figure]
        within = low <= value <= high
        outside = outside or not within
        lines.append(f"{figure:14} {f'predicted {low:g} to {high:g}':>18}   measured {value:8.2f}   {'as predicted' if within else 'OUTSIDE'}")
    return "\n".join(lines + ([LOOK] if outside else []))


def passes_of(bench):
    """Lines about a bench: the rate of a copy, T(M) in ms and over T(1) for each M, the cycles, plain decoding."""
    passes = bench.get("passes", [])
    first = passes[0]["median_seconds"] if passes else 0
    lines = [f"copy {bench.get('copy_gb_per_s') or 0:.0f} GB/s, weights {1e-9 * (bench.get('pass_bytes') or 0):.2f} GB"]
    for one in passes:
        seconds = one["median_seconds"]
        lines.append(f"T({one['rows']:2}) {1e3 * seconds:8.3f} ms  {seconds / first if first else 0:5.2f} x T(1)  "
                     f"({1e3 * one.get('min_seconds', 0):.3f} to {1e3 * one.get('max_seconds', 0):.3f}, {one.get('runs', 0)} runs)")
    for cycle in bench.get("cycles") or []:
        lines.append(f"cycle {cycle['tree']}: {1e3 * cycle['seconds']:.3f} ms, {cycle.get('tokens_per_second') or 0:.1f} tokens/s")
    if bench.get("plain_tokens_per_second"):
        lines.append(f"plain {bench['plain_tokens_per_second']:.1f} tokens/s, prefill {bench.get('prefill_tokens_per_second') or 0:.0f}")
    return "\n".join(lines)
