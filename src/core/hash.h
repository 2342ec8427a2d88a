// A hash that is the same on every machine: for names of cache files, checksums and seeds.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace aerie {

// FNV-1a, 64 bits.
inline uint64_t fnv1a(std::string_view bytes) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (unsigned char byte : bytes) hash = (hash ^ byte) * 0x100000001b3u;
    return hash;
}

inline std::string hex_digits(uint64_t value) {
    constexpr const char* kDigits = "0123456789abcdef";
    std::string text(16, '0');
    for (size_t i = text.size(); i-- > 0; value >>= 4) text[i] = kDigits[value & 15];
    return text;
}

// A fast hash for many gigabytes. Four lanes take eight bytes each; a step maps different words,
// and different lanes, to different lanes, and spreads each bit. The hash is not cryptographic: two
// inputs with the same hash can be made on purpose.
class LongHash {
  public:
    void add(std::span<const std::byte> bytes) {
        size_bytes_ += bytes.size();
        for (; bytes.size() >= sizeof(lanes_); bytes = bytes.subspan(sizeof(lanes_)))
            step(bytes.data());
        if (bytes.empty()) return;
        std::byte last[sizeof(lanes_)] = {};  // the size in digest() tells zeros from data
        std::memcpy(last, bytes.data(), bytes.size());
        step(last);
    }

    // The hash of all bytes that were added. It also depends on where pieces ended that were not
    // multiples of 32 bytes.
    std::string digest() const {
        uint64_t first = size_bytes_, second = ~size_bytes_;
        for (const uint64_t lane : lanes_) {
            first = mixed(first ^ lane);
            second = mixed(second + std::rotl(lane, 32));
        }
        return hex_digits(first) + hex_digits(second);
    }

  private:
    static constexpr uint64_t kOdd = 0x9e3779b97f4a7c15u;

    static uint64_t mixed(uint64_t x) {
        x = (x ^ (x >> 32)) * kOdd;
        return (x ^ (x >> 29)) * kOdd;
    }
    void step(const std::byte* bytes) {
        for (size_t i = 0; i < 4; ++i) {
            uint64_t word = 0;
            std::memcpy(&word, bytes + i * sizeof(word), sizeof(word));
            lanes_[i] = mixed(lanes_[i] ^ word);
        }
    }

    uint64_t lanes_[4] = {1, 2, 3, 4};
    uint64_t size_bytes_ = 0;
};

}  // namespace aerie
