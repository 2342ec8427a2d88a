"""Reads machine code of NVIDIA's GPUs of compute capabilities 8.x and 9.0 from a .cubin, without any tool: its loops,
and how a lone warp runs through them.

An instruction is 16 bytes. Its lowest 9 bits are the opcode; bits 105 and up say how long the next instruction waits,
which of six scoreboards this one sets when its result is there, and for which it waits. An opcode without a name here
is arithmetic."""

import struct
from dataclasses import dataclass

NAMES = {0x181: "LDG", 0x184: "LDS", 0x03b: "LDSM", 0x182: "LDC", 0x183: "LDL", 0x186: "STG", 0x187: "STL", 0x188: "STS",
         0x189: "SHFL", 0x1ae: "LDGSTS", 0x1af: "LDGDEPBAR", 0x11a: "DEPBAR", 0x11d: "BAR", 0x147: "BRA", 0x14d: "EXIT",
         0x03c: "HMMA", 0x037: "IMMA", 0x108: "MUFU", 0x119: "S2R", 0x1c3: "S2UR", 0x118: "NOP"}
MATRICES = ("HMMA", "IMMA")
LOCAL = ("LDL", "STL")
BYTES = (1, 1, 2, 2, 4, 8, 16, 16)  # of a load, by its three bits of width
NEVER = 15  # !PT, a predicate
# Clocks until a result is there, other than that of a load from memory.
LATENCY = {"LDS": 30, "LDSM": 33, "LDC": 35, "SHFL": 25, "BAR": 30, "MUFU": 20, "S2R": 25, "S2UR": 25}
OTHER_LATENCY = 20


@dataclass
class Instruction:
    place: int
    op: str
    predicate: int
    stall: int
    sets: int  # a scoreboard; 7: none
    waits: int  # the scoreboards that it waits for, a bit each
    target: int | None  # where a branch goes
    bytes: int  # of a load, per lane
    pending: int  # of DEPBAR: groups of copies that it does not wait for

    def runs(self):
        return self.predicate != NEVER

    def is_conditional(self):
        return self.predicate != 7


def distance_of(low, high, architecture):
    """Bytes from the end of a branch instruction to its target."""
    far = low >> 34 | (high & 0x3ffff) << 30
    far -= (far >> 47) << 48
    return 4 * (far << 8 | low >> 16 & 0xff) if architecture >= 90 else 4 * far


def decode(place, low, high, architecture):
    op = NAMES.get(low & 0x1ff, "")
    target = place + 16 + distance_of(low, high, architecture) if op == "BRA" else None
    control = high >> 41
    return Instruction(place, op, low >> 12 & 15, control & 15, control >> 5 & 7, control >> 11 & 63, target,
                       BYTES[high >> 9 & 7], low >> 38 & 63)


def kernels_of(cubin):
    """{mangled name: instructions} of a .cubin, the bytes of an ELF file. ValueError for other architectures."""
    architecture = cubin[0x31]  # from the flags of the ELF header
    if not 80 <= architecture <= 90:
        raise ValueError(f"code for sm_{architecture}, which is not known here")
    offset, = struct.unpack_from("<Q", cubin, 0x28)
    count, names = struct.unpack_from("<2H", cubin, 0x3c)
    sections = [struct.unpack_from("<IIQQQQ", cubin, offset + 64 * i) for i in range(count)]
    found = {}
    for name_at, _, _, _, at, size in sections:
        begin = sections[names][4] + name_at
        name = cubin[begin : cubin.index(b"\0", begin)].decode()
        if name.startswith(".text."):
            words = enumerate(struct.iter_unpack("<QQ", cubin[at : at + size]))
            found[name[len(".text."):]] = [decode(16 * i, *two, architecture) for i, two in words]
    return found


@dataclass
class Loop:
    begin: int  # places in the list of instructions
    end: int  # the branch back
    path: list  # what a turn runs through, loops within it left out; () if it cannot be followed
    depth: int = 0

    def count(self, *ops):
        return sum(i.op in ops and i.runs() for i in self.path)

    def bytes(self, op):
        return sum(i.bytes for i in self.path if i.op == op and i.runs())


def next_of(instructions, here):
    i = instructions[here]
    if i.op == "EXIT" and not i.is_conditional():
        return []
    there = [i.target // 16] if i.target is not None else []
    return there if there and not i.is_conditional() else [*there, here + 1]


def reached(instructions, without=-1):
    """Places that can be reached from the first one without passing through the place `without`."""
    found, open_ends = set(), [0]
    while open_ends:
        here = open_ends.pop()
        if here not in found and here != without and here < len(instructions):
            found.add(here)
            open_ends += next_of(instructions, here)
    return found


def spans_of(instructions):
    """(first place, last place) of each loop: a branch back that can be reached only through the loop's beginning.
    Other branches back return from code for rare cases, which stands behind the end of a kernel."""
    ends, ever = {}, reached(instructions)
    back = [(i.target // 16, here) for here, i in enumerate(instructions) if here in ever and i.target is not None and i.target // 16 < here]
    for begin in {begin for begin, _ in back}:
        others = reached(instructions, begin)
        for end in (end for b, end in back if b == begin and end not in others):
            ends[begin] = max(ends.get(begin, 0), end)
    return sorted(ends.items())


def path_of(instructions, begin, end, within):
    """The instructions of one iteration without nested loops: straight on wherever that stays in the loop, since
    conditional branches lead to rare cases. [] if the path cannot be followed."""
    path, here, entered = [], begin, dict(within)
    while len(path) <= end - begin:
        if here in entered and here != begin:
            here = entered[here] + 1
            continue
        i = instructions[here]
        path.append(i)
        if i.target == 16 * begin and here <= end:
            return path
        if i.target is not None and begin * 16 <= i.target <= end * 16 and i.target > i.place:
            leaves = here + 1 > end
            here = i.target // 16 if leaves or not i.is_conditional() else here + 1
        else:
            here += 1
        if not begin <= here <= end:
            return []
    return []


def loops_of(instructions):
    spans, loops = spans_of(instructions), []
    for begin, end in spans:
        within = [(b, e) for b, e in spans if begin <= b and e <= end and (b, e) != (begin, end)]
        loop = Loop(begin, end, path_of(instructions, begin, end, within))
        loop.depth = sum(b <= begin and end <= e for b, e in spans) - 1
        loops.append(loop)
    return loops


def straight_of(instructions):
    """All code that is in no loop, without NOPs, in the form of a Loop of one iteration."""
    nested = {n for begin, end in spans_of(instructions) for n in range(begin, end + 1)}
    path = [i for n, i in enumerate(instructions) if n not in nested and i.op != "NOP"]
    return Loop(0, len(instructions) - 1, path)


def clocks_of(path, loads, copies=0, turns=64):
    """Clocks of the last of `turns` iterations of `path` by a lone warp. `loads`, `copies`: clocks until a load from
    memory has arrived, or a copy from memory to shared memory."""
    now, ready, begun, groups = 0, [0] * 6, 0, []
    for _ in range(turns):
        begun = now
        for i in path:
            now = max([now] + [ready[n] for n in range(6) if i.waits >> n & 1])
            if i.op == "LDGDEPBAR":
                groups.append(now + copies)
            elif i.op == "DEPBAR" and len(groups) > i.pending:
                now = max(now, groups[len(groups) - i.pending - 1])
            elif i.sets < 6 and i.runs():
                late = loads if i.op == "LDG" else LATENCY.get(i.op, OTHER_LATENCY)
                ready[i.sets] = max(ready[i.sets], now + late)
            now += max(1, i.stall)
    return now - begun


LONG = 100_000  # clocks, beside which all else is nothing


def trips_of(path):
    """How many trips to memory an iteration waits for, one after the other; a load for the next iteration is one."""
    return round((clocks_of(path, LONG) - clocks_of(path, 0)) / LONG)


def copies_awaited(path, clocks):
    """The share of the latency of a copy to shared memory, `clocks`, that an iteration waits for; 0 where copies are
    started far enough ahead."""
    return (clocks_of(path, 0, clocks) - clocks_of(path, 0)) / clocks
