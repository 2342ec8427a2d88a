"""How often each loop of a Vulkan kernel runs, and how many bytes the kernel reads, since its code does not say. Loops
are in the order of the code. Kernels of c849204 bear the same names as today's, and are recognised by their constants
and by the number and the loads of their loops."""

import math

# Llama-2-7B.
HIDDEN, INTERMEDIATE, HEADS, HEAD_DIM, LAYERS, VOCAB = 4096, 11008, 32, 128, 32, 32000
BLOCK_BYTES = {"q4_0": 18 / 32, "q8_0": 34 / 32, "f16": 2}  # per element
CHUNK = 64  # positions
# Matmuls of a layer, (name, inner, outputs); those that a head has before them; those after the last layer.
OF_LAYER = [("qkv", HIDDEN, 3 * HIDDEN), ("o", HIDDEN, HIDDEN), ("gate_up", HIDDEN, 2 * INTERMEDIATE),
            ("down", INTERMEDIATE, HIDDEN)]
OF_HEAD, LAST = [("fc", 2 * HIDDEN, HIDDEN)], [("lm_head", HIDDEN, VOCAB)]
WEIGHT = "2"  # the binding of a matmul's weight
TREE_DEPTH = 7  # positions behind the context that a tree of six levels takes


def ceil_div(a, b):
    return -(-a // b)


def parts_of(name):
    shader, *constants = name.split()
    return shader, [int(c) for c in constants]


def is_matmul(name):
    return "matmul" in name


def is_attention(name):
    return name.split()[0] == "attention"


def prepares_x(name, kernel):
    """Whether this is c849204's f16 kernel, in which each workgroup finds x's amax and splits x in two f16 parts."""
    return name.startswith("matmul_f16_cooperative") and len(parts_of(name)[1]) < 6 and len(kernel["loops"]) > 3


def rows_together(name, rows):
    """Number of rows that a workgroup of attention computes together."""
    _, constants = parts_of(name)
    return min(rows, constants[1] * constants[2]) if len(constants) > 2 else 1


class Pass:
    """A pass over `rows` rows of x after `context` positions; the rows are a tree's nodes or consecutive tokens."""

    def __init__(self, weight, rows, context=100, tree=False):
        self.weight, self.rows, self.context, self.tree = weight, rows, context, tree
        self.chunks = ceil_div(context + (TREE_DEPTH if tree else 0), CHUNK)


def finishing_turns(shader, c, kernel, inner):
    """Iterations of each loop of a matmul that may normalise x first and have an epilogue last; the two loops of the
    product are between."""
    loops, invocations = kernel["loops"], kernel["invocations"]
    main = next(i for i, loop in enumerate(loops) if WEIGHT in loop["loads_of"])

    def others(loop):
        if set(loop["loads_of"]) == {"1"}:
            return ceil_div(inner, 1024)  # squares
        return max(1, inner // (16 * invocations)) if loop["loads"] else 1

    product = matmul_turns(shader.removesuffix("_normed"), c, {"loops": loops[main - 1:main + 1]}, inner, 0)
    return [others(loop) for loop in loops[:main - 1]] + product + [others(loop) for loop in loops[main + 1:]]


def halves_turns(c, loops, inner):
    """Iterations of each loop of matmul_halves.comp: those that prepare a row, the product, the writing of its sums,
    the epilogue."""
    columns, steps, finish, invocations = c[0], c[5], c[6], 128 * c[9]
    main = next(i for i, loop in enumerate(loops) if WEIGHT in loop["loads_of"])
    after = [ceil_div(columns * 16, invocations), ceil_div(columns * (32 if finish == 1 else 16), invocations)]
    squares = [ceil_div(inner, 4096) if loop["loads"] else 1 for loop in loops[:main]]
    return [*squares, ceil_div(inner, 256 * c[9]) * 256 // (32 * steps), *after[:len(loops) - main - 1]]


def matmul_turns(shader, c, kernel, inner, lanes):
    loops, groups = kernel["loops"], inner // 32
    if shader.startswith("matmul_f16") and len(c) > 9:
        return halves_turns(c, loops, inner)
    if shader.endswith("_normed") or (shader.endswith("_dot") and len(c) > 6):
        return finishing_turns(shader, c[:3], kernel, inner)
    if shader.endswith("_dot"):
        if len(loops) == 3:  # c849204: the sum of a step has a loop of one iteration
            return [ceil_div(groups, c[1])] * 2 + [1]
        round_groups = 32 * c[1]
        rounds = [min(32, groups - r) for r in range(0, groups, round_groups)]
        return [len(rounds), sum(ceil_div(r, c[2]) for r in rounds)]
    few = c[0] <= 32
    if "f16" not in shader:
        stage_groups = 4 if few else 2
        stages = ceil_div(groups, stage_groups)
        if len(loops) == 2:  # the products of a stage, and the results
            return [stages, c[0] // 4]
        tiles = max(1, stage_groups * 2 * (c[0] // 16) * lanes // 128)
        put = [stages * c[0] * stage_groups * 4 // 128] if loops[1]["loads"] else []
        return [stages, *put, stages * tiles]
    stages = ceil_div(inner, 128 if few else 64)
    turns = [c[0], c[0] * inner // 128, stages, stages * (4 if few else 8)]
    return turns if few else turns + [stages * max(1, 8 * lanes // 128)]


def attention_turns(name, kernel, work):
    """(iterations, share of the workgroups that run it) of each loop of attention."""
    n = len(kernel["loops"])
    if len(parts_of(name)[1]) > 2:
        own = rows_together(name, work.rows)
        steps, mixed = HEAD_DIM // 64, parts_of(name)[1][4]
        alone = mixed / 2 * steps / work.chunks  # positions of the last chunk that not all rows see, or in no whole
                                                 # eight
        return [(t, 1) for t in [own, 1, steps] + [8] * (n == 8) + [steps, 0, 64 * steps // mixed, alone]]
    last = 1 / work.chunks  # c849204: one of a row's workgroups merges the chunks
    units = [1, 32, 32 * work.chunks] if n == 11 else [2, 2 * work.chunks]
    return [(t, 1) for t in (1, 8, 64, 1, 64)] + [(t, last) for t in [1, work.chunks - 1, work.chunks] + units]


def turns_of(name, kernel, inner, work, lanes):
    """(iterations, share of the workgroups that run it) of every loop of a kernel; lanes: those of a subgroup."""
    shader, c = parts_of(name)
    loops = kernel["loops"]
    if is_attention(name):
        turns = attention_turns(name, kernel, work)
    elif is_matmul(name):
        turns = [(t, 1) for t in matmul_turns(shader, c, kernel, inner, lanes)]
    else:
        blocks, share, merged = ceil_div(work.chunks, 128), ceil_div(work.chunks, 64), 3 * ceil_div(work.chunks, 8)
        known = {
            "rms_norm": [inner // (128 if loops and loops[0]["loads"] == 1 else 1024), 1 if c else inner // 128],
            "rms_norm_halves": [inner // 1024, inner // 2048, inner // 1024],
            "halves": [ceil_div(inner, 2048), ceil_div(inner, 1024)],
            "attention_merge": [blocks, blocks, share, share, share, 3 * blocks, merged, 2, 1 if c else 2],
            "best_slice": [VOCAB // 8 // 256, 8],
        }
        turns = [(t, 1) for t in known.get(shader, [8] * len(loops))]  # never a bias; a residual at times
        if shader.startswith("rms_norm") and len(loops) == len(turns) + 1:  # a loop over lanes around the squares
            turns.insert(0, (1, 1))
    if len(turns) != len(loops):
        raise SystemExit(f"{name} has {len(loops)} loops, and of {len(turns)} is known how often they turn")
    return turns


def working_groups(name, grid, work):
    """(workgroups that have something to do, items of each). An item is a chunk of attention; other ops have one."""
    groups = math.prod(grid)
    if not is_attention(name):
        return groups, 1
    items = work.chunks
    if work.tree:
        alike = work.context // CHUNK  # the other positions are in slots of each row's own
        items = alike + rows_together(name, work.rows) * (work.chunks - alike)
    deep = min(items, grid[2])
    return grid[0] * grid[1] * deep, items / deep


def bytes_of(name, kernel, shape, blocks, groups, items, work):
    """(bytes that must come from memory, bytes that come from the L2 cache)."""
    shader, c = parts_of(name)
    if is_matmul(name):
        inner, outputs = shape
        weights = inner * outputs * BLOCK_BYTES[work.weight]
        of_x = (8 if prepares_x(name, kernel) else 4) if "f16" in shader else 36 / 32
        if shader.endswith("_normed"):
            of_x = 8  # including the norm's weight
        if shader.endswith("_row_cooperative"):
            of_x = 20 if "_normed" in shader else 8  # for its squares, its amax and the product
        return weights, weights * blocks + groups * min(work.rows, c[0]) * inner * of_x
    if is_attention(name):
        return 2 * HEADS * HEAD_DIM * 2 * work.context, groups * items * 2 * CHUNK * HEAD_DIM * 2
    return 0, 0
