# Checks that no bits of the compiled shaders' results can depend on the driver: float arithmetic is never fused
# (NoContraction), there is no division and no function that may be rounded differently, nothing depends on the width of
# a subgroup, and shared memory is at most 32 KiB. Some things are forbidden because some drivers get them wrong:
# arithmetic on whole cooperative matrices, which RADV fuses in spite of NoContraction; arrays sized by a
# specialisation constant, which Metal does not have; buffers through which a workgroup passes results to another in the
# same dispatch. The script reads SPIR-V as CMake embeds it.
import re
import sys

CONTRACTIBLE = {129: "OpFAdd", 131: "OpFSub", 133: "OpFMul", 142: "OpVectorTimesScalar", 143: "OpMatrixTimesScalar",
                144: "OpVectorTimesMatrix", 145: "OpMatrixTimesVector", 146: "OpMatrixTimesMatrix", 147: "OpOuterProduct",
                148: "OpDot"}
FORBIDDEN = {136: "OpFDiv", 140: "OpFRem", 141: "OpFMod"}
# The allowed instructions of GLSL.std.450: absolute values, minima, maxima, clamps, and positions of bits; and f16 as
# f32, which lib/half.glsl uses only on devices that were created to keep denormals.
EXTENDED = {4, 5, 37, 38, 39, 40, 41, 42, 43, 44, 45, 62, 73, 74, 75}
CAPABILITIES = {1, 6018, 6019}  # Shader, packed integer dot products
FETCHING = {61, 64}  # subgroups, in variants for drivers of one width: words are passed on, never added
MATRICES = {6022, 5345, 61, 9, 39}  # cooperative matrices of f16 and int8, and the memory model that they need
NO_CONTRACTION, WORKGROUP, SHARED_BYTES = 42, 4, 32 * 1024
COHERENT, VOLATILE, BUFFER_SEMANTICS = 23, 21, 0x40
MEMORY_BARRIER, CONTROL_BARRIER = 225, 224
# All arithmetic, also of integers, that can have matrices as operands: negation to division, and times a scalar.
ARITHMETIC = set(range(126, 144))
MATRIX_TYPE, SPECIAL = 4456, {50, 52}  # OpTypeCooperativeMatrixKHR; OpSpecConstant, OpSpecConstantOp


def instructions(words):
    if words[0] != 0x07230203:
        raise ValueError("no SPIR-V")
    at = 5
    while at < len(words):
        count, opcode = words[at] >> 16, words[at] & 0xffff
        yield opcode, words[at + 1:at + count]
        at += count


class Sizes:
    """Sizes of types in bytes, and those of arrays in shared memory; None if a specialisation constant decides."""

    def __init__(self):
        self.of, self.constants, self.shared = {}, {}, []

    def see(self, opcode, args):
        if opcode in (21, 22):  # OpTypeInt, OpTypeFloat
            self.of[args[0]] = args[1] // 8
        elif opcode == 20:  # OpTypeBool
            self.of[args[0]] = 4
        elif opcode == 23:  # OpTypeVector
            self.of[args[0]] = self.of[args[1]] * args[2]
        elif opcode == 28:  # OpTypeArray
            length, element = self.constants.get(args[2]), self.of.get(args[1])
            self.of[args[0]] = None if length is None or element is None else length * element
        elif opcode == 30:  # OpTypeStruct
            parts = [self.of.get(part) for part in args[1:]]
            self.of[args[0]] = None if None in parts else sum(parts)
        elif opcode == 32 and args[1] == WORKGROUP:  # OpTypePointer
            self.of[args[0]] = self.of.get(args[2])
        elif opcode == 43:  # OpConstant
            self.constants[args[1]] = args[2]
        elif opcode == 59 and args[2] == WORKGROUP:  # OpVariable
            self.shared.append(self.of.get(args[0]))


def hazards(listed, has_matrices):
    """Yields uses of what some drivers get wrong."""
    matrices = {args[0] for opcode, args in listed if opcode == MATRIX_TYPE}
    special = {args[1] for opcode, args in listed if opcode in SPECIAL}
    constants = {args[1]: args[2] for opcode, args in listed if opcode == 43}
    for opcode, args in listed:
        if opcode in ARITHMETIC and args[0] in matrices:
            yield f"arithmetic {opcode} on a matrix, %{args[1]}"
        # Drivers with cooperative matrices support such arrays, and their shared memory is scarce.
        if opcode == 28 and args[2] in special and not has_matrices:
            yield f"array %{args[0]} of a size that is specialised"
        if opcode in (71, 72) and {COHERENT, VOLATILE} & set(args[opcode - 70:opcode - 69]):
            yield f"%{args[0]} is coherent or volatile"
        if opcode in (MEMORY_BARRIER, CONTROL_BARRIER) and constants.get(args[-1], 0) & BUFFER_SEMANTICS \
                and not has_matrices:
            yield "a barrier for memory of buffers"


def faults(words, more_capabilities):
    listed = list(instructions(words))
    yield from hazards(listed, more_capabilities is MATRICES)
    exact = {args[0] for opcode, args in listed if opcode == 71 and args[1] == NO_CONTRACTION}
    sizes = Sizes()
    for opcode, args in listed:
        sizes.see(opcode, args)
        if opcode in CONTRACTIBLE and args[1] not in exact:
            yield f"{CONTRACTIBLE[opcode]} %{args[1]} may be contracted"
        if opcode in FORBIDDEN:
            yield f"{FORBIDDEN[opcode]} %{args[1]}"
        if opcode == 12 and args[3] not in EXTENDED:
            yield f"extended instruction {args[3]} %{args[1]}"
        if opcode == 17 and args[0] not in CAPABILITIES | more_capabilities:
            yield f"capability {args[0]}"
    if None not in sizes.shared and sum(sizes.shared) > SHARED_BYTES:
        yield f"{sum(sizes.shared)} bytes of shared memory"


failures, arithmetic = [], 0
for path in sys.argv[1:]:
    with open(path) as text:
        code = [int(word, 16) for word in re.findall(r"0x([0-9a-f]{8})", text.read())]
    more = FETCHING if path.endswith("_fetch.spv.h") else MATRICES if path.endswith("_cooperative.spv.h") else set()
    failures += [f"{path}: {fault}" for fault in faults(code, more)]
    arithmetic += sum(opcode in CONTRACTIBLE for opcode, _ in instructions(code))
if arithmetic < 100:
    failures.append(f"only {arithmetic} float operations in {len(sys.argv) - 1} shaders: this looks at the wrong files")
print("\n".join(failures) or f"{arithmetic} float operations of {len(sys.argv) - 1} shaders are exact")
sys.exit(bool(failures))
