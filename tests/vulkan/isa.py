"""Reads the machine code of AMD's GPUs as RADV prints it: in the form of LLVM's disassembler or, for chips that LLVM
does not know yet, in that of RADV's own compiler."""

import re

MEMORY_LOAD = re.compile(r"^(buffer|global|flat)_load_")
SCALAR_LOAD = re.compile(r"^s_(buffer_)?load_")
SHARED_LOAD = re.compile(r"^ds_(read|load)")
MATRIX = re.compile(r"^v_s?wmma")
# Waits and hints to the scheduler: they take no slot of another instruction.
HINT = re.compile(r"^s_(delay_alu|clause|nop|waitcnt|wait_\w+)")
# Instructions that round once where the source has two roundings. v_mad and v_mac of floats round twice.
FUSED = re.compile(r"^v_(pk_|dual_)?(fma(?!s)|fmac|fmaak|fmamk|dot2\w*_(f32|f16|bf16)_)|^v_div_fma")


class Instruction:
    def __init__(self, line):
        # "  v1: (precise)%22:v[3] = buffer_load_dword ..." or " buffer_load_b32 v3, ...  ; e0500000"
        self.line = line
        text = line.split(";")[0].strip()
        if re.match(r"^[sv]\d+b?: ", text):
            text = text.split(" = ", 1)[-1]
        # A line may have two instructions: "v_dual_mul_f32 v1, v2, v3 :: v_dual_add_f32 ..."
        parts = [part.split(None, 1) for part in text.split(" :: ")]
        self.ops = [part[0] for part in parts if part]
        self.rest = text

    @property
    def op(self):
        return self.ops[0]

    def is_load(self):
        return bool(MEMORY_LOAD.match(self.op))

    def resource(self):
        """The first scalar register of the descriptor of the buffer that is loaded from, or None."""
        found = re.search(r"s\[(\d+)[:-]\d+\]", self.rest)
        return int(found[1]) if found else None

    def is_shared_load(self):
        return bool(SHARED_LOAD.match(self.op))

    def bytes(self):
        """Bytes that a load reads for each lane."""
        found = re.search(r"_(?:b|dwordx?)(\d*)(?:\b|_)", self.op)
        if self.op.endswith(("dword", "_b32")):
            return 4
        if found and found[1]:
            return int(found[1]) // 8 if "_b" in self.op else 4 * int(found[1])
        return 2 if "16" in self.op or "short" in self.op else 1

    def waits_for_loads(self):
        """How many loads may still be under way after this wait; None if it does not wait for loads."""
        if self.op in ("s_waitcnt", "s_wait_loadcnt_dscnt", "s_wait_loadcnt"):
            found = re.search(r"(?:vmcnt\(|loadcnt\(|imm:|s_wait_loadcnt (?=0x))(\w+)", self.rest)
            return int(found[1], 0) if found else None
        return None

    def waits_for_shared(self):
        if self.op == "s_wait_dscnt" or self.op == "s_wait_loadcnt_dscnt":
            return True
        return self.op == "s_waitcnt" and "lgkmcnt" in self.rest

    def is_work(self):
        return not HINT.match(self.op)

    def is_barrier(self):
        return self.op in ("s_barrier", "s_barrier_wait")

    def target(self):
        found = re.search(r"\bBB(\d+)\b", self.rest) if self.op.startswith("s_cbranch") or self.op == "s_branch" else None
        return int(found[1]) if found else None


def instructions_of(code):
    """(instructions in order, {number of a basic block: index of its first instruction})."""
    blocks, out = {}, []
    for line in code.splitlines():
        label = re.match(r"^BB(\d+):?\s*$", line)
        if label:
            blocks[int(label[1])] = len(out)
        elif line.strip() and line[0] in " \t" and not line.strip().startswith("/*"):
            out.append(Instruction(line))
    name_bindings(out)
    return out, blocks


def name_bindings(instructions):
    """Sets the `binding` that each load reads. Descriptors, of 16 bytes, lie in one table in the order of bindings."""
    held = {}  # bindings by the first register of their descriptors
    for i in instructions:
        i.binding = None
        loaded = re.match(r"s_load_(?:b|dwordx)(\d+)\b.*?s\[(\d+)[:-](\d+)\].*?(0x[0-9a-f]+|\d+|null)$", i.rest)
        target = re.match(r"\s*s\d+: %\d+:s\[(\d+)", i.line)
        if loaded and int(loaded[1]) >= 4:
            first = int(target[1]) if target else int(loaded[2])
            count = int(loaded[1]) // (32 if i.op.startswith("s_load_b") else 1) // 4
            offset = 0 if loaded[4] == "null" else int(loaded[4], 0)
            for n in range(count):
                held[first + 4 * n] = offset // 16 + n
        elif i.is_load():
            i.binding = held.get(i.resource())


class Loop:
    """Counts of the instructions of a loop. Nested loops are loops of their own; only their waits count here."""

    def __init__(self, instructions, begin, end, within):
        nested = {place for b, e in within for place in range(b, e + 1)}
        own = [instructions[place] for place in range(begin, end + 1) if place not in nested]
        body = [i for place, i in enumerate(instructions[begin : end + 1], begin)
                if place not in nested or i.waits_for_loads() is not None or i.waits_for_shared()]
        ours = set(map(id, own))
        self.depth = 0
        self.instructions = sum(i.is_work() for i in own)
        self.loads = sum(i.is_load() for i in own)
        self.load_bytes = {}  # per lane, by binding
        for i in own:
            if i.is_load():
                self.load_bytes[i.binding] = self.load_bytes.get(i.binding, 0) + i.bytes()
        self.loads_of = {}
        for i in own:
            if i.is_load():
                self.loads_of[i.binding] = self.loads_of.get(i.binding, 0) + 1
        self.full_waits = sum(i.waits_for_loads() == 0 for i in own)
        self.trips, self.together = runs_of(body, lambda i: id(i) in ours and i.is_load(),
                                            lambda i: i.waits_for_loads() is not None)
        self.ahead = ahead_of(instructions[begin : end + 1], begin, ours, [b for b, _ in within])
        self.shared_loads = sum(i.is_shared_load() for i in own)
        self.shared_trips, _ = runs_of(body, lambda i: id(i) in ours and i.is_shared_load(),
                                       Instruction.waits_for_shared)
        self.barriers = sum(i.is_barrier() for i in own)
        self.matrices = sum(bool(MATRIX.match(i.op)) for i in own)
        self.vector = sum(len(i.ops) for i in own if i.op.startswith("v_"))


def runs_of(body, is_load, is_wait):
    """(runs, loads of the longest run). A run is the loads between two waits; it may go on in the next iteration."""
    runs, current = [], 0
    for i in body:
        if is_load(i):
            current += 1
        elif is_wait(i) and current:
            runs.append(current)
            current = 0
    if current:
        waits_first = next((is_wait(i) for i in body if is_load(i) or is_wait(i)), False)
        if runs and not waits_first:
            runs[0] += current
        else:
            runs.append(current)
    return len(runs), max(runs, default=0)


def ahead_of(body, begin, ours, nested):
    """For each run of loads, in order, [instructions, trips to shared memory, barriers, starts of nested loops] between
    its last load and the wait for it, which may lie in the next iteration. Only the loop's own instructions count."""
    found, last = [], None
    for place, i in enumerate(body + body):
        around = place - len(body)
        if i.waits_for_loads() is not None and last is not None:
            between = [body[n % len(body)] for n in range(last + 1, place)]
            places = {begin + n % len(body) for n in range(last + 1, place)}
            own = [b for b in between if id(b) in ours]
            shared, _ = runs_of(own, Instruction.is_shared_load, Instruction.waits_for_shared)
            found.append((last, [sum(b.is_work() for b in own), shared, sum(b.is_barrier() for b in own), [n for n in nested if n in places]]))
            last = None
        if around >= 0 and last is None:
            break
        if id(i) in ours and i.is_load() and around < 0:
            last = place
    return [what for _, what in found]


def spans_of(instructions, blocks):
    """(index of the first instruction, index of the last one) of each loop."""
    ends = {}
    for place, i in enumerate(instructions):
        target = i.target()
        if target is not None and blocks.get(target, place + 1) <= place:
            begin = blocks[target]
            ends[begin] = max(ends.get(begin, 0), place)
    return sorted(ends.items())


def loops_of(code):
    """All loops of a kernel, in order; `depth` counts the loops around one."""
    instructions, blocks = instructions_of(code)
    spans, loops = spans_of(instructions, blocks), []
    for begin, end in spans:
        loop = Loop(instructions, begin, end, [(b, e) for b, e in spans if begin <= b and e <= end and (b, e) != (begin, end)])
        loop.depth = sum(b <= begin and end <= e for b, e in spans) - 1
        loops.append(loop)
    return loops


def straight_of(code):
    """The code that is in no loop, in the form of a Loop."""
    instructions, blocks = instructions_of(code)
    return Loop(instructions, 0, len(instructions) - 1, spans_of(instructions, blocks))


def is_power_of_two(word):
    return int(word, 16) & 0x7FFFFF == 0


def rounds_once(instruction):
    """Whether a v_fma_mix, which can also read f16, does only one operation: a sum, since a factor is 1, or a product,
    since -0 is added."""
    operands = re.sub(r" op_sel\S*", "", instruction.rest).split(None, 1)[1].strip().split(", ")
    return "1.0" in operands[-3:-1] or operands[-1] == "neg(0)"


def fused_of(code):
    """Instructions that round once where the source has two operations. A product with a power of two is exact, so a
    sum with such a product is rounded once either way, and is not listed."""
    instructions, _ = instructions_of(code)
    constants, fused = {}, set()
    for i in instructions:
        moved = re.match(r"s_mov_b32 (s\d+), 0x([0-9a-f]{8})$", i.rest)
        if moved:
            constants[moved[1]] = moved[2]
        elif i.op.startswith("s_"):
            constants.pop(re.split(r"[ ,]", i.rest + " ")[1], None)
        if not any(FUSED.match(op) for op in i.ops):
            continue
        if i.op.startswith("v_fma_mix") and len(i.ops) == 1 and rounds_once(i):
            continue
        words = re.findall(r"0x([0-9a-f]{8})\b", i.rest)
        words += [constants[name] for name in re.findall(r"\bs\d+\b", i.rest) if name in constants]
        if not (len(i.ops) == 1 and words and "aak" not in i.op and all(map(is_power_of_two, words))):
            fused.add(i.rest)
    return sorted(fused)
