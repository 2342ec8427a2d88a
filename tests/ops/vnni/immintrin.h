// The instructions of dots_avx512.h in plain C++, for machines that lack them.
#pragma once

#include <cstdint>
#include <cstring>

struct __m512i {
    uint8_t bytes[64];
};

inline __m512i _mm512_loadu_si512(const void* from) {
    __m512i a;
    std::memcpy(a.bytes, from, sizeof(a.bytes));
    return a;
}
inline void _mm512_storeu_si512(void* to, __m512i a) {
    std::memcpy(to, a.bytes, sizeof(a.bytes));
}
inline __m512i _mm512_set1_epi32(int32_t value) {
    __m512i a;
    for (int i = 0; i < 16; ++i) std::memcpy(a.bytes + i * 4, &value, 4);
    return a;
}
inline __m512i _mm512_set1_epi8(char value) {
    __m512i a;
    std::memset(a.bytes, value, sizeof(a.bytes));
    return a;
}
inline __m512i _mm512_xor_si512(__m512i a, __m512i b) {
    for (int i = 0; i < 64; ++i) a.bytes[i] ^= b.bytes[i];
    return a;
}
inline __m512i _mm512_and_si512(__m512i a, __m512i b) {
    for (int i = 0; i < 64; ++i) a.bytes[i] &= b.bytes[i];
    return a;
}
inline __m512i _mm512_srli_epi16(__m512i a, unsigned count) {
    for (int i = 0; i < 64; i += 2) {
        uint16_t word;
        std::memcpy(&word, a.bytes + i, 2);
        word = uint16_t(word >> count);
        std::memcpy(a.bytes + i, &word, 2);
    }
    return a;
}
// sum + the dot products of four unsigned bytes of a and four signed ones of b.
inline __m512i _mm512_dpbusd_epi32(__m512i sum, __m512i a, __m512i b) {
    for (int i = 0; i < 64; i += 4) {
        int32_t value;
        std::memcpy(&value, sum.bytes + i, 4);
        for (int j = i; j < i + 4; ++j) value += int(a.bytes[j]) * int(int8_t(b.bytes[j]));
        std::memcpy(sum.bytes + i, &value, 4);
    }
    return sum;
}
