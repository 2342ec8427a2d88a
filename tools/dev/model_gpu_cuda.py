"""The part of model_gpu.py for NVIDIA's GPUs: reads figures of kernels from nvcc's code, and predicts times from them.

A matmul runs at the slowest of five rates: that of its resident warps, each with the waits of its own loop; those of
the L1 cache, of the matrix units and of the instruction slots of the multiprocessors that have work; and that of
memory. Blocks that do not fit run in a later round. Any other kernel takes the time of its loops, one after the other,
or that of issuing all its instructions, whichever is longer. The code of a kernel does not say how wide its blocks are
and how often its loops run: CODE below has the former, the methods of Model the latter."""

import dataclasses
import json
import math
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests/cuda"))

HIDDEN, INTERMEDIATE, HEADS, HEAD_DIM, LAYERS, VOCAB, CHUNK = 4096, 11008, 32, 128, 32, 32000, 64
BLOCK_BYTES = {"f16": 2, "q8_0": 17 / 16}  # per element
CACHE_LINE = 128
LATENCIES = (0, 40, 265, 700)  # clocks of a load, for which a loop's clocks are stored


@dataclasses.dataclass
class Gpu:
    architecture: str
    units: int
    ghz: float
    far: int  # clocks of an access to the second cache
    memory: float  # GB/s that a kernel reaches
    cache: float  # GB/s of the second cache
    shared: int  # KiB of a multiprocessor
    half_matrix: float  # clocks of a scheduler for 16 x 8 x 16 of f16, and for 16 x 8 x 32 of int8
    int_matrix: float
    peak: float  # GB/s of a copy, with which T(1) is compared


# From the estimate of c849204 by hand (README.md): not to be fitted to anything.
GPUS = {
    "H200": Gpu("90", 132, 1.9, 265, 4300 * 0.93, 5500, 227, 7, 7, 4300),
    "RTX 4090": Gpu("89", 128, 2.5, 280, 955, 5000, 99, 32, 16, 955),
    "RTX 3060": Gpu("86", 28, 1.78, 240, 340, 1400, 99, 32, 16, 340),
}
NEAR = 40  # clocks of an access to the first cache
CACHE_FAR = 500  # clocks for the K and V of a sequence, which a pass reads once
COPY_CLOCKS = 1300  # 0.7 us until a copy from memory has arrived
GAP_US = 1.2  # between kernels of a graph
# Parts of a cycle in us that the estimate counts between drafting and verifying and back; small kernels of a level are
# below.
HOST_US = {"ids are read": 10, "rows are written": 10, "table is read": 10, "tree": 15, "rows of the pass": 5,
           "graph": 8, "head's launches": 14}
COMPACT_US = 2.3  # per launch; c849204 has one per layer
BESIDE_US = 2.0  # that a matmul gains at most by starting beside the kernel before it, by the estimate (its 2.4 e)
SMALL_US, MERGE_US = 1.3, 9.0  # for the small kernels of a level


@dataclasses.dataclass
class Code:
    """How a commit launches its kernels, which their machine code does not say."""
    warps: int  # in a block of a matmul, and of a gated one
    gated_warps: int
    ring: int  # bytes of the ring at the launch; 0: ptxas counts it
    part: int  # columns of a part of split-K; 0: no split
    compacts: int  # launches per cycle
    small_of_level: int  # kernels of a level that are neither matmuls nor of its layer (tests/simt/counts_test.cpp)
    is_fused: bool  # the kernels that compute few rows also rotate and merge them; a single row is prepared by its
                    # readers; matmuls start beside other kernels
    host_us: dict = dataclasses.field(default_factory=dict)  # in place of some of HOST_US


# Results are polled in memory of the host: 6 us less, by the estimate (its 2.6). The moves and the rows that they
# concern are written at once. The head's pass has 12 launches (tests/simt/counts_test.cpp).
HOST_NOW = {"ids are read": 4, "table is read": 4, "rows are written": 5, "head's launches": 12}
CODE = {"c849204": Code(1, 4, 0, 0, LAYERS, 16, False), "now": Code(8, 8, 60 << 10, 1024, 1, 5, True, HOST_NOW)}
MAX_STEPS = 8  # of a ring
MANY_TILES, MAX_TILES = 4, 8  # tiles of 8 tokens; from MANY_TILES on, partial sums are saved
WIDE_WARPS, WIDE_RING = 16, 120 << 10  # for float weights and many tokens
STEP, MIN_STEPS = 32, 8  # columns; MIN_STEPS: of a split of float weights
TREE_DEPTH = 7  # nodes of a path through it, the root included
PORT_BYTES = 64  # that a multiprocessor reads from the second cache per clock


def loop_of(loop):
    import sass

    clocks = [sass.clocks_of(loop.path, latency, turns=8) for latency in LATENCIES]
    return {
        "depth": loop.depth, "instructions": len(loop.path), "clocks": clocks, "trips": sass.trips_of(loop.path),
        "late": sass.clocks_of(loop.path, 0, COPY_CLOCKS) - clocks[0], "loads": loop.count("LDG"),
        "load_bytes": loop.bytes("LDG"), "shared_bytes": loop.bytes("LDS"), "copies": loop.count("LDGSTS"),
        "barriers": loop.count("BAR"), "matrices": loop.count("HMMA", "IMMA"),
    }


def straight_of(instructions):
    import sass

    loop = sass.straight_of(instructions)
    return {"instructions": len(loop.path), "clocks": [sass.clocks_of(loop.path, n, turns=1) for n in LATENCIES]}


def pieces_of(instructions):
    """Instructions and clocks (by LATENCIES) of each piece of straight code: one before each outermost loop, and one
    from the last of these to the kernel's EXIT. Code behind the EXIT is for rare cases and not counted."""
    import sass

    spans = sass.spans_of(instructions)
    outer = [s for s in spans if not any(b <= s[0] and s[1] <= e and (b, e) != s for b, e in spans)]
    begins = [0, *(end + 1 for _, end in outer)]
    ends = [*(begin for begin, _ in outer), len(instructions)]
    pieces = [[i for i in instructions[b:e] if i.op != "NOP"] for b, e in zip(begins, ends)]
    last = next((n for n, i in enumerate(pieces[-1]) if i.op == "EXIT" and not i.is_conditional()), len(pieces[-1]))
    del pieces[-1][last + 1:]
    return [{"instructions": len(p), "clocks": [sass.clocks_of(p, n, turns=1) for n in LATENCIES]} for p in pieces]


def before_loops(instructions):
    """Clocks (by LATENCIES) of the straight code between a kernel's first loop, which starts copies of weights, and the
    loop of its product."""
    import sass

    spans = sass.spans_of(instructions)
    main = max(sass.loops_of(instructions), key=lambda l: l.count(*sass.MATRICES))
    last = min(begin for begin, end in spans if begin <= main.begin <= end)
    within = {n for begin, end in spans for n in range(begin, end + 1)}
    path = [i for n, i in enumerate(instructions[:last]) if n > spans[0][1] and n not in within and i.op != "NOP"]
    return [sass.clocks_of(path, latency, turns=1) for latency in LATENCIES]


def figures_of_code(nvcc, root, commit):
    """Figures of the kernels that a pass of Llama-2-7B has, for each architecture of GPUS; `root`: the repository."""
    import compiled
    import sass

    wanted = ("matmul", "matmul_quant", "attention", "rms_norm", "rope_append")
    found = compiled.compile_all(nvcc, root, sorted({g.architecture for g in GPUS.values()}), wanted)
    kernels = {}
    for architecture, all_of_it in found.items():
        kernels[architecture] = {
            k.name.replace("Q8,", "Q8_0,"): {"registers": k.registers, "shared": k.shared, "straight": straight_of(k.instructions),
                     "loops": [loop_of(loop) for loop in sass.loops_of(k.instructions) if loop.path],
                     **({"before": before_loops(k.instructions)} if "_row_kernel" in k.name else {}),
                     **({"pieces": pieces_of(k.instructions)} if k.name.startswith("chunk_") else {})}
            for k in all_of_it.values() if not any(other in k.name for other in ("BF16", "f32", "Q4", "Q5", "Q6"))}
    return {"commit": commit, "cuda": kernels}


def keep(figures, to):
    of = [f' "{a}": {{\n' + ",\n".join(f"  {json.dumps(n)}: {json.dumps(k)}" for n, k in sorted(kernels.items())) + "}"
          for a, kernels in figures["cuda"].items()]
    Path(to).write_text(f'{{"commit": {json.dumps(figures["commit"])}, "cuda": {{\n' + ",\n".join(of) + "}}\n")


def ceil_div(a, b):
    return -(-a // b)


def tiles_of(rows):
    return next(tiles for tiles in (1, 2, 4, 8) if rows <= 8 * tiles)


def clocks_at(part, latency):
    """Clocks of `part` if a load takes `latency` clocks: linear between the LATENCIES for which clocks are stored."""
    for i in range(1, len(LATENCIES)):
        if latency <= LATENCIES[i] or i == len(LATENCIES) - 1:
            low, high = LATENCIES[i - 1 : i + 1]
            a, b = part["clocks"][i - 1 : i + 1]
            return a + (b - a) * (latency - low) / (high - low)


class Model:
    def __init__(self, name, figures, weight):
        self.gpu, self.weight = GPUS[name], weight
        self.kernels = figures["cuda"][self.gpu.architecture]
        self.code = CODE[figures["commit"]]

    def row_kernel(self, gated):
        return self.kernels["multiply_row_kernel<F16>" if self.weight == "f16"
                            else f"{'gated' if gated else 'multiply'}_row_kernel<Q8_0>"]

    def matmul_us(self, outputs, inner, rows, gated=False, held=False, left=False):
        """Time in us of `rows` tokens times a weight [outputs, inner]. `held`: the kernel in which each block prepares
        the single row for itself. `left`: partial sums are left to the kernel that reads the output."""
        gpu, f16 = self.gpu, self.weight == "f16"
        tiles = tiles_of(rows)
        gated = gated and not f16
        kernel = self.row_kernel(gated) if held else \
            self.kernels[f"{'gated' if gated else 'multiply'}_kernel<{'F16' if f16 else 'Q8_0'}, {tiles}>"]
        warps, ring = self.code.gated_warps if gated else self.code.warps, self.code.ring
        evenly = f16 and self.code.ring > 0
        if evenly and tiles == MAX_TILES and WIDE_RING <= gpu.shared * 1024:
            kernel, warps, ring = self.kernels["multiply_wide_kernel<F16>"], WIDE_WARPS, WIDE_RING
        loop = max(kernel["loops"], key=lambda l: l["matrices"])
        if not loop["matrices"]:
            raise SystemExit(f"{self.weight}, {tiles} tiles: no loop of matrices")
        # For each matrix instruction of a tile, a warp takes 16 columns of x as two f16 parts, or 32 columns.
        columns = loop["matrices"] / tiles * (8 if f16 else 32)
        step = 16 * columns * BLOCK_BYTES[self.weight]
        of_x = tiles * (32 if f16 else 9) * inner  # bytes
        turn = self.turn_clocks(loop, not f16 and tiles == 1, columns * 9 / 8) + loop["late"]
        first_cache = (32 * (loop["load_bytes"] + loop["shared_bytes"]) + 512 * loop["copies"]) / CACHE_LINE
        matrix = loop["matrices"] * (gpu.half_matrix if f16 else gpu.int_matrix)
        resident = self.resident(kernel, warps, ring, (warps * step + of_x * columns / inner) / max(1, loop["barriers"]))
        parts = 1 if evenly else self.parts_of(outputs, inner, warps)
        strip = step * ceil_div(inner, columns) / parts  # bytes per warp and part
        row_blocks = ceil_div(outputs, 16 * warps)
        first = self.first_parts(row_blocks, parts, tiles)
        # With split-K, partial sums and a count go to the second cache, and the last block reads the others' sums.
        each = 16 * warps * tiles * 32  # bytes of partial sums per block
        together = [parts - first + 1] * row_blocks if not evenly else self.sums_of_rows(outputs, inner) * (WIDE_WARPS // warps)
        most = max(together)
        clocks = max(ceil_div(most, min(4, MAX_TILES // tiles)) * gpu.far, (most - 1) * each / PORT_BYTES)
        ns = sum(together) * each / gpu.cache if left else \
            (most > 1) * ((2 * gpu.far + clocks) / gpu.ghz + sum(2 * n - 1 for n in together if n > 1) * each / gpu.cache)

        def part_ns(blocks):
            """Time in ns in which `blocks` blocks, all at once, compute one part of K each."""
            now = blocks * warps
            active = min(4, ceil_div(now, gpu.units))  # schedulers
            rate = min(now * step / turn * gpu.ghz, gpu.units * step / first_cache * gpu.ghz, gpu.memory,
                       *(min(gpu.units, blocks) * active * step / clocks * gpu.ghz for clocks in (matrix, loop["instructions"])))
            readers = min(gpu.units, now) if not self.code.ring else blocks / parts
            return max(now * strip / rate, (now * strip + of_x * readers) / gpu.cache)

        if evenly:  # each block has equally many columns of a row block
            ranges = self.split_ranges(outputs, inner)
            waiting = [row_blocks / (ranges * WIDE_WARPS // warps)] * (ranges * WIDE_WARPS // warps)
        else:
            waiting = row_blocks * (parts - first) * [1] + row_blocks * [first]
        running = []
        while waiting or running:
            while waiting and len(running) < resident // warps * gpu.units:
                running.append(waiting.pop())
            done = min(running)
            ns += done * part_ns(len(running))
            running = [left - done for left in running if left > done]
        return ns / 1e3

    def row_us(self, outputs, inner, normed, early_us, gated=False):
        """Time in us that a block needs to prepare its row, beyond the time in which its ring fills anyway. `normed`:
        the row is normalised first. `early_us`: the part of the filling that was done before the kernel's turn."""
        gpu, code, kernel = self.gpu, self.code, self.row_kernel(gated)
        loops = kernel["loops"]
        main = max(range(len(loops)), key=lambda i: loops[i]["matrices"] * (1 + loops[i]["depth"]))
        around, product = loops[main - 1:main + 1]
        evenly = self.weight == "f16"
        # The first and the last part of a split of float weights are seldom whole.
        range_steps = self.even_steps(outputs, inner) / self.split_ranges(outputs, inner)
        parts = range_steps * STEP / code.part + 1 if evenly else \
            ceil_div(inner, code.part) if self.parts_of(outputs, inner, code.warps) == 1 else 1
        # The row is in the first cache if squares were summed before, or for f16 if amax was.
        clocks = kernel["before"][0] + normed * ceil_div(inner, 4096) * clocks_at(loops[1], gpu.far)
        if self.weight == "f16":
            clocks += clocks_at(loops[2], NEAR if normed else gpu.far) * (ceil_div(inner, 4096) if normed else 1)
        here = NEAR if normed and self.weight == "f16" else gpu.far
        # The outer loop may contain a step of the product, which is counted in the inner loop's iterations.
        steps = around["matrices"] / product["matrices"]
        each = clocks_at(around, here) - product["clocks"][0] * steps
        clocks += each * parts
        resident = self.resident(kernel, code.warps, code.ring) // code.warps
        blocks = WIDE_WARPS // code.warps * self.split_ranges(outputs, inner) if evenly else \
            ceil_div(outputs, 16 * code.warps) * self.parts_of(outputs, inner, code.warps)
        blocks = min(resident, ceil_div(blocks, gpu.units))
        fills_us = blocks * code.ring * gpu.units / gpu.memory / 1e3
        return max(0, clocks / gpu.ghz / 1e3 - max(0, fills_us - early_us))

    def split_ranges(self, outputs, inner):
        """Number of ranges of K of a product with float weights, as SplitPlan::split_floats has it."""
        ranges = min(max(self.even_steps(outputs, inner) // MIN_STEPS, 1), self.gpu.units)
        blocks = ceil_div(outputs, 16 * WIDE_WARPS)
        return min(range(ranges, ceil_div(ranges * 15, 16) - 1, -1), key=lambda s: -math.gcd(s, blocks))

    def even_steps(self, outputs, inner):
        return ceil_div(outputs, 16 * WIDE_WARPS) * ceil_div(inner, STEP)

    def sums_of_rows(self, outputs, inner):
        """For each block of 256 output rows, the number of ranges of K that have a partial sum of it."""
        steps, all_steps, ranges = ceil_div(inner, STEP), self.even_steps(outputs, inner), self.split_ranges(outputs, inner)
        of_step = [((step + 1) * ranges - 1) // all_steps for step in range(all_steps)]
        return [of_step[end - 1] - of_step[end - steps] + 1 for end in range(steps, all_steps + 1, steps)]

    def first_parts(self, row_blocks, parts, tiles):
        """Parts of K of the first of the blocks with the same rows, as SplitPlan::split_quantised has it."""
        if not self.code.ring or parts == 1 or tiles < MANY_TILES:
            return 1
        return min(ceil_div(row_blocks * parts, self.gpu.units * 2), parts - 1)

    def parts_of(self, outputs, inner, warps):
        """Parts of K that are divided among blocks, or 1 if a block has all of K: the rule of SplitPlan::split_quantised."""
        if not self.code.part:
            return 1
        rows, parts = ceil_div(outputs, 16 * warps), ceil_div(inner, self.code.part)
        undivided = ceil_div(rows, self.gpu.units) * parts
        return parts if ceil_div(rows * parts, self.gpu.units) * 5 <= undivided * 4 else 1

    def turn_clocks(self, loop, as_they_lie, row_bytes):
        """Clocks of an iteration of a matmul's loop. If x is read as its rows lie, not packed, each cache line comes
        from the L2 cache once and from the L1 cache afterwards; an iteration reads `row_bytes` of a row."""
        if not as_they_lie:
            return clocks_at(loop, self.gpu.far)
        lines = min(loop["trips"], row_bytes / CACHE_LINE)
        return clocks_at(loop, NEAR) + lines * (self.gpu.far - NEAR)

    def beside_us(self, outputs, inner, before_us):
        """Time in us that a matmul saves by starting beside the kernel before it, which takes `before_us`: its first
        weights are then already on their way."""
        if not self.code.is_fused or self.gpu.architecture != "90":
            return 0
        # One ring per multiprocessor, which has at least two, to be careful.
        weights = min(self.code.ring * self.gpu.units, outputs * inner * BLOCK_BYTES[self.weight])
        return min(BESIDE_US, before_us, weights / self.gpu.memory / 1e3)

    def resident(self, kernel, warps, ring=0, step_bytes=1):
        """Warps that a multiprocessor holds at once, as shared memory, registers and a limit of 48 allow. A block has
        `warps`, and a ring of `ring` bytes in steps of `step_bytes`."""
        shared = kernel["shared"] + min(MAX_STEPS, ring // step_bytes) * step_bytes
        by_shared = int(self.gpu.shared * 1024 // (shared + 1024))
        by_registers = 65536 // (32 * warps * kernel["registers"])
        return warps * max(1, min(by_shared, by_registers, 48 // warps))

    def other_us(self, name, turns, blocks, warps=4, resident=8, pieces=None):
        """Time in us of a kernel that is no matmul. `turns`: {number of loops that the kernel may have: (iterations,
        clocks of a load) of each loop}. `pieces`: the pieces of its straight code that count, if not all of it."""
        kernel, gpu = self.kernels[name], self.gpu
        loops = kernel["loops"]
        if len(loops) not in turns:
            raise SystemExit(f"{name} has {len(loops)} loops, and of {list(turns)} is known how often they turn")
        pieces = pieces or [kernel["straight"]]
        waits = sum(clocks_at(piece, gpu.far) for piece in pieces)
        slots = sum(piece["instructions"] for piece in pieces)
        for loop, (count, latency) in zip(loops, turns[len(loops)]):
            waits += count * clocks_at(loop, latency)
            slots += count * loop["instructions"]
        rounds = max(1, blocks / (resident * gpu.units))
        return max(waits * rounds, slots * blocks * warps / (4 * min(blocks, gpu.units))) / gpu.ghz / 1e3

    # The kernels between matmuls, each with the launch before it. Fewer loops mean the kernels of now.

    def deferred_ranges(self, outputs, inner, rows):
        """The most ranges of K whose partial sums of an output row the kernel that reads it adds up; 0 if no reduction
        is deferred. Only those of products of float weights are."""
        is_deferred = self.code.is_fused and self.weight == "f16" and tiles_of(rows) >= MANY_TILES
        sums = self.sums_of_rows(outputs, inner)
        return max(sums) if is_deferred and len(sums) < self.split_ranges(outputs, inner) else 0

    def norm_us(self, rows, inner=0):
        """Time in us of a norm. `inner`: K of the product that was added to the rows before it; 0 if there was none."""
        far, each = self.gpu.far, HIDDEN // 128
        if self.code.is_fused and rows == 1:
            return 0
        if self.code.is_fused:  # a row is in registers, without any loop
            ranges = self.deferred_ranges(HIDDEN, inner, rows) if inner else 0
            name = f"norm_columns_kernel<F16, 8, {'PartialSums' if ranges else 'NoPartialSums'}>" if self.weight == "f16" else \
                "rms_norm_kernel<8>"
            turns = {2: [(0, 0), (HIDDEN // 128 // 8, 0)]}
            turns[4] = 2 * [(0, 0)] + turns[2]
            us = self.other_us(name, turns, rows, warps=16, resident=4) + GAP_US
            if not ranges:
                return us
            # The partial sums of a row are added two or one per element at a time.
            two, one = (clocks_at(loop, far) for loop in self.kernels[name]["loops"][:2])
            clocks = max(ranges // 2 * two + ranges % 2 * one, ranges * HIDDEN * 4 / PORT_BYTES)
            return us + max(clocks / self.gpu.ghz, rows * ranges * HIDDEN * 4 / self.gpu.cache) / 1e3
        if self.weight == "f16":
            turns = [(0, 0), (each // 4, far), (each // 16, NEAR), (0, 0), (0, 0), (0, 0), (each // 2, NEAR)]
            return self.other_us("pack_columns_kernel<F16, NormedRows>", {7: turns}, 8 * tiles_of(rows)) + GAP_US
        if rows > 8 and "pack_normed_kernel" in self.kernels:
            turns = [(0, 0), (each // 4, far), (0, 0), (each // 4, NEAR)]
            return self.other_us("pack_normed_kernel", {4: turns}, 8 * tiles_of(rows)) + GAP_US
        turns = [(0, 0), (each // 4, far), (each // 4, NEAR), (0, 0), (0, 0)]
        return self.other_us("rms_norm_kernel", {5: turns}, rows) + GAP_US

    def pack_us(self, inner, rows):
        each, far = inner // 128, self.gpu.far
        if self.code.is_fused and self.weight == "f16":
            if rows == 1:
                return 0
            kernel = "pack_columns_kernel<F16>"
            together = ceil_div(inner, 8 * 512)
            return self.other_us(kernel, {2: [(together, far), (together, NEAR)]}, rows, warps=16, resident=4) + GAP_US
        if self.weight == "f16":
            turns = [(each // 16, far), (each % 16 // 4, NEAR), (each % 4, NEAR), (0, 0), (each // 2, NEAR)]
            return self.other_us("pack_columns_kernel<F16, PlainRows>", {5: turns}, 8 * tiles_of(rows)) + GAP_US
        if rows <= 8 or "pack_columns_kernel" not in self.kernels:
            return 0  # rows are read as they are
        return self.other_us("pack_columns_kernel", {0: []}, 8 * tiles_of(rows) * inner // 512) + GAP_US

    def tiles_us(self, rows, context):
        """Time in us of attention's chunks by matrix instructions. A block has 8 rows of a head, or as many as there
        are; blocks share the chunks where there is room for several. In the last chunk of a tree each row has a tail of
        its own."""
        chunks, own, units, warps = ceil_div(context + 1, CHUNK), min(8, 2 ** (rows - 1).bit_length()), self.gpu.units, 4
        high, trees = ceil_div(rows, own), int(rows > 1)
        deep = max(1, min(2 * units // (HEADS * high), chunks + 2 * own))
        name = f"chunk_tiles_kernel<{int(deep == 1)}>"
        kernel, far = self.kernels[name], self.gpu.far
        pieces, resident = kernel["pieces"], self.resident(kernel, warps) // warps
        # Counts for the block with the most of them. Positions come in 16s: those that all rows see, and the others, 4
        # rows at a time.
        alike = ceil_div(chunks, deep) - trees
        near = context % CHUNK
        joint, others = near // 16, ceil_div(near + TREE_DEPTH, 16) - near // 16
        turns = [(alike, far), (alike * 2, 0), (0, 0), (alike, 0), (alike * 2, 0), (0, 0), (1 - trees, 0)]
        turns += [(trees, far), (trees * 2, 0), (0, 0), (trees * 2, 0), (0, 0), (trees * others, 0), (trees * joint / 2, 0),
                  (trees * others * own / 4, 0), (0, 0)]
        merged = ceil_div(chunks, 8 if own == 1 else 4)
        merge = [(1, 0), (1, 0), (1, far), (min(chunks, 4) // 4, 0), (chunks % 4, 0), (merged, far)]
        four = [(1, 0), *((own / 4 * count, latency) for count, latency in merge[1:])]
        one = [merge[0], *merge[2:]]
        ends = [(own / 4, 0), (own / 4, 0)] if deep == 1 else [(0, 0)] * 6 + one if own == 1 else four + [(0, 0)] * 5
        end = pieces[2] if deep == 1 or own > 1 else pieces[3]
        loops, none = len(turns) + len(ends), [(0, 0)]
        us = self.other_us(name, {loops: turns + none * len(ends)}, HEADS * high * deep, warps, resident, pieces[:2])
        us += self.other_us(name, {loops: none * len(turns) + ends}, HEADS * high, warps, resident, [end, pieces[-1]])
        # Copies that are not prefetched: the first keys, and keys and values of the tails.
        us += (1 + 2 * trees) * CACHE_FAR / self.gpu.ghz / 1e3
        copied = HEADS * high * (chunks + trees) * 4 * CHUNK * HEAD_DIM
        return max(us, copied / self.gpu.cache / 1e3) + (deep > 1) * self.ticket_us()

    def chunks_us(self, rows, context):
        chunks, far = ceil_div(context + 1, CHUNK), self.gpu.far
        if self.weight == "f16" and "chunk_tiles_kernel<1>" in self.kernels:
            return self.tiles_us(rows, context)
        if "chunk_kernel<f16, 8>" in self.kernels:  # one block per row, head and chunk
            turns = [(1, 0), (1, far), (8, CACHE_FAR), (1, 0), (CHUNK // 4, CACHE_FAR)]
            return self.other_us("chunk_kernel<f16, 8>", {5: turns}, rows * HEADS * chunks)
        # A block has 4 rows, or as many as leave enough blocks; blocks share the chunks with slots that are the same for
        # all rows. The last chunk of a tree is taken by fours, each with a tail of its own, or one by one.
        own, slots, name, warps = min(4, 2 ** (rows - 1).bit_length()), 4 * self.gpu.units, "chunk_kernel<f16, 1>", 4
        if own == 4 and HEADS * ceil_div(rows, 8) * 4 >= slots * 3:
            own = 8
        high = ceil_div(rows, own)
        deep = max(1, min(slots // (HEADS * high), chunks + 2 * own))
        alike, alone = (chunks, 0) if rows == 1 else (chunks - 1, own)
        forks = own // 4 if ceil_div(alike + own // 4, deep) < ceil_div(alike + own, deep) else 0
        if forks:
            alone = 0
        shared, single = (0, alike / deep) if own == 1 else (alike / deep, alone / deep)
        if forks and deep > 1:  # the block with the fork is the last
            shared = ceil_div(alike + forks, deep) - 1
        fours = shared * own / 4
        pieces = self.kernels[name]["pieces"]
        # First the stores of zeros, then queries, then chunks. 4 pairs: a pair of 16 elements of keys, 8 positions of
        # values. Positions that some rows do not see are taken one by one. The code of a fork is about as long as that
        # around a chunk and four pairs.
        turns = [(own, 0), (0, 0), (own == 1, far), (own / 4 if own > 1 else 0, far), (shared + single + forks, far)]
        turns += [(fours + forks, 0), (fours * 4, 0), (0, 0), (0, 0), (fours * 8, 0), (0, 0)]
        turns += [(single, 0), (single * 2, 0), (0, 0), (0, 0), (single * 8, 0), (0, 0)]
        # First the common slots, then the tails: keys, then values.
        near = context % CHUNK
        turns += [(forks * 4, 0), (0, 0), (forks, 0), (forks * 2, 0), (0, 0), (0, 0), (forks * near / 8, 0),
                  (forks * near % 8, 0), (forks * TREE_DEPTH, 0)]
        # Merging the chunks of several blocks, with 4 pairs or one; or storing the results of the only block.
        groups, weighed, merged = own / 4, min(chunks, 4), ceil_div(chunks, 8 if own == 1 else 4)
        merge = [(1, 0), (1, 0), (1, far), (weighed // 4, 0), (chunks % 4, 0), (merged, far)]
        none, four = [(0, 0)] * 6, [(groups * count, latency) for count, latency in merge]
        one = [merge[0], *merge[2:]]
        ends = none + none[:5] + [(groups, 0)] * 2 if deep == 1 else four + none[:5] + none[:2] if own > 1 else \
            none + one + none[:2]
        piece = 7 if deep == 1 else 5 if own > 1 else 6
        resident = self.resident(self.kernels[name], warps) // warps
        us = self.other_us(name, {len(turns) + len(ends): turns + [(0, 0)] * len(ends)}, HEADS * high * deep, warps,
                           resident, pieces[:5])
        us += self.other_us(name, {len(turns) + len(ends): [(0, 0)] * len(turns) + ends}, HEADS * high, warps, resident,
                            [pieces[piece], pieces[-1]])
        return us + (deep > 1) * self.ticket_us()

    def attention_us(self, rows, context):
        """Time in us of attention: its chunks, their merging by the last block or by a kernel of its own, and rotation
        by a kernel of its own or, up to 8 rows, in the matmul before."""
        chunks, far = ceil_div(context + 1, CHUNK), self.gpu.far
        if self.code.is_fused:
            # Two pairs of elements per thread, of 256; four partial sums at a time.
            ranges = self.deferred_ranges(3 * HIDDEN, HIDDEN, rows)
            name, turns = ("rope_sums_kernel", [(ceil_div(ranges, 4), far)]) if ranges else ("rope_append_kernel", [])
            rope = self.other_us(name, {len(turns): turns}, ceil_div(rows * 3 * HIDDEN, 1024), warps=8, resident=4)
            rope = max(rope, rows * ranges * 3 * HIDDEN * 4 / self.gpu.cache / 1e3)
            return self.chunks_us(rows, context) + GAP_US + (rope + GAP_US if rows > 8 else 2 * rope if rows > 1 else rope)
        rope = self.other_us("rope_append_kernel<f16>", {2: [(2, far), (1, far)]}, rows * 3 * HIDDEN // 256)
        merge = self.other_us("merge_kernel", {1: [(chunks, far)]}, rows * HIDDEN // 128)
        return self.chunks_us(rows, context) + merge + rope + 3 * GAP_US

    def ticket_us(self):
        """Time in us until the last block to arrive knows that it is the last, and has what the others stored: three
        accesses to the L2 cache (its own stores, the counter, the others' stores)."""
        return 3 * self.gpu.far / self.gpu.ghz / 1e3

    def layer_us(self, rows, context):
        """(us of the matmuls of a layer, us of everything else in it)."""
        norms, attention = [self.norm_us(rows, inner) for inner in (HIDDEN, INTERMEDIATE)], self.attention_us(rows, context)
        packs = [self.pack_us(inner, rows) for inner in (HIDDEN, INTERMEDIATE)]
        us, is_row = 4 * GAP_US, self.code.is_fused and rows == 1
        for outputs, inner, before in ((3 * HIDDEN, HIDDEN, norms[1]), (HIDDEN, HIDDEN, attention + packs[0]),
                                       (2 * INTERMEDIATE, HIDDEN, norms[0]), (HIDDEN, INTERMEDIATE, packs[1])):
            gated, normed = outputs > 3 * HIDDEN, outputs > HIDDEN
            held = is_row and (normed or self.weight == "f16")  # quantised rows already are
            early = self.beside_us(outputs, inner, GAP_US + (BESIDE_US if is_row else before))
            left = outputs <= 3 * HIDDEN and self.deferred_ranges(outputs, inner, rows) > 0
            us += self.matmul_us(outputs, inner, rows, gated, held, left) - early
            us += self.row_us(outputs, inner, normed, early, gated) if held else 0
        return us, sum(norms) + attention + sum(packs)

    def pass_ms(self, rows, context=300):
        matmuls, rest = self.layer_us(rows, context)
        held = self.code.is_fused and rows == 1
        last = self.matmul_us(VOCAB, HIDDEN, rows, held=held) + self.norm_us(rows, INTERMEDIATE) + 3 * (SMALL_US + GAP_US)
        last += self.row_us(VOCAB, HIDDEN, True, 0) if held else 0
        return (LAYERS * (matmuls + rest) + last) / 1e3

    def level_us(self, context=300, rows=10):
        """Time in us of one level of EAGLE-2's drafting, `rows` nodes, with a head of this weight type."""
        matmuls, rest = self.layer_us(rows, context)
        ends = self.matmul_us(HIDDEN, 2 * HIDDEN, rows) + self.matmul_us(VOCAB, HIDDEN, rows)
        return matmuls + rest + ends + self.code.small_of_level * (SMALL_US + GAP_US) + MERGE_US

    def gap_us(self):
        return sum((HOST_US | self.code.host_us).values()) + COMPACT_US * self.code.compacts

    def floor_ms(self):
        weights = LAYERS * HIDDEN * (4 * HIDDEN + 3 * INTERMEDIATE) + HIDDEN * VOCAB
        return weights * BLOCK_BYTES[self.weight] / self.gpu.peak / 1e6


def times_of(name, figures, weight):
    """T(1) in ms; T(8), T(16) and T(60) divided by it; then, for EAGLE-2 with a q8_0 head, six levels and a tree of 60
    nodes: us of a level, us of the host between drafting and verification, and T(1) over the time of a cycle
    (efficiency)."""
    model, head = Model(name, figures, weight), Model(name, figures, "q8_0")
    ms = [model.pass_ms(rows) for rows in (1, 8, 16, 60)]
    level, gap = head.level_us(), model.gap_us()
    cycle = ms[3] + (6 * level + gap) / 1e3
    return [ms[0], *(m / ms[0] for m in ms[1:]), level, gap, ms[0] / cycle]


def print_table(figures):
    print(f"{figures['commit']}:  T(1) ms (of a copy)  T(8)  T(16)  T(60) by T(1), level, host us, cycle's efficiency")
    for name in GPUS:
        for weight in BLOCK_BYTES:
            ms, *ratios, level, gap, efficiency = times_of(name, figures, weight)
            share = Model(name, figures, weight).floor_ms() / ms
            print(f"{name:9} {weight:5} {ms:6.1f} ({share:4.0%})" + "".join(f"  {r:5.2f}" for r in ratios)
                  + f"  {level:6.0f}  {gap:4.0f}  {efficiency:5.2f}")
