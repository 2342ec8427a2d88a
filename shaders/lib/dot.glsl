// The sum of four products of signed bytes. With INTEGER_DOT it is an instruction (OpSDotKHR,
// packed), spelled as SPIR-V because older GLSL compilers have no extension for it.
#if defined(INTEGER_DOT)
#extension GL_EXT_spirv_intrinsics : require
spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [6019, 6018],
                  id = 4450)
int dot_packed(uint a, uint b, spirv_literal int format);

int dot_bytes(uint a, uint b) {
    return dot_packed(a, b, 0);
}
#else
int dot_bytes(uint a, uint b) {
    int sum = 0;
    for (int i = 0; i < 32; i += 8)
        sum += bitfieldExtract(int(a), i, 8) * bitfieldExtract(int(b), i, 8);
    return sum;
}
#endif
