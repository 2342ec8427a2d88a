// The instructions of dots_vnni.h in plain C++, for machines that lack them.
#pragma once

#include <cstdint>
#include <cstring>

namespace vnni {

template <int size>
struct Register {
    uint8_t bytes[size];
};

template <int size>
Register<size> load(const void* from) {
    Register<size> a;
    std::memcpy(a.bytes, from, size);
    return a;
}
template <int size>
void store(void* to, const Register<size>& a) {
    std::memcpy(to, a.bytes, size);
}
template <int size>
Register<size> repeat_word(int32_t value) {
    Register<size> a;
    for (int i = 0; i < size; i += 4) std::memcpy(a.bytes + i, &value, 4);
    return a;
}
template <int size>
Register<size> repeat_byte(char value) {
    Register<size> a;
    std::memset(a.bytes, value, size);
    return a;
}
template <int size, class Op>
Register<size> each_byte(Register<size> a, const Register<size>& b, const Op& op) {
    for (int i = 0; i < size; ++i) a.bytes[i] = uint8_t(op(a.bytes[i], b.bytes[i]));
    return a;
}
template <int size>
Register<size> exclusive_or(const Register<size>& a, const Register<size>& b) {
    return each_byte(a, b, [](int x, int y) { return x ^ y; });
}
template <int size>
Register<size> bits_of_both(const Register<size>& a, const Register<size>& b) {
    return each_byte(a, b, [](int x, int y) { return x & y; });
}
template <int size>
Register<size> shift_right_words(Register<size> a, unsigned count) {
    for (int i = 0; i < size; i += 2) {
        uint16_t word;
        std::memcpy(&word, a.bytes + i, 2);
        word = uint16_t(word >> count);
        std::memcpy(a.bytes + i, &word, 2);
    }
    return a;
}
template <int size>
Register<size> shift_left_words(Register<size> a, unsigned count) {
    for (int i = 0; i < size; i += 2) {
        uint16_t word;
        std::memcpy(&word, a.bytes + i, 2);
        word = uint16_t(word << count);
        std::memcpy(a.bytes + i, &word, 2);
    }
    return a;
}
template <int size>
Register<size> bits_of_either(const Register<size>& a, const Register<size>& b) {
    return each_byte(a, b, [](int x, int y) { return x | y; });
}
// sum plus the dot products of four unsigned bytes of a and four signed bytes of b.
template <int size>
Register<size> add_dots(Register<size> sum, const Register<size>& a, const Register<size>& b) {
    for (int i = 0; i < size; i += 4) {
        int32_t value;
        std::memcpy(&value, sum.bytes + i, 4);
        for (int j = i; j < i + 4; ++j) value += int(a.bytes[j]) * int(int8_t(b.bytes[j]));
        std::memcpy(sum.bytes + i, &value, 4);
    }
    return sum;
}

}  // namespace vnni

using __m512i = vnni::Register<64>;
#define _mm512_loadu_si512 vnni::load<64>
#define _mm512_storeu_si512 vnni::store<64>
#define _mm512_set1_epi32 vnni::repeat_word<64>
#define _mm512_set1_epi8 vnni::repeat_byte<64>
#define _mm512_xor_si512 vnni::exclusive_or<64>
#define _mm512_and_si512 vnni::bits_of_both<64>
#define _mm512_srli_epi16 vnni::shift_right_words<64>
#define _mm512_slli_epi16 vnni::shift_left_words<64>
#define _mm512_or_si512 vnni::bits_of_either<64>
#define _mm512_dpbusd_epi32 vnni::add_dots<64>

using __m256i = vnni::Register<32>;
#define _mm256_loadu_si256 vnni::load<32>
#define _mm256_storeu_si256 vnni::store<32>
#define _mm256_set1_epi32 vnni::repeat_word<32>
#define _mm256_set1_epi8 vnni::repeat_byte<32>
#define _mm256_xor_si256 vnni::exclusive_or<32>
#define _mm256_and_si256 vnni::bits_of_both<32>
#define _mm256_srli_epi16 vnni::shift_right_words<32>
#define _mm256_slli_epi16 vnni::shift_left_words<32>
#define _mm256_or_si256 vnni::bits_of_either<32>
#define _mm256_dpbusd_avx_epi32 vnni::add_dots<32>
