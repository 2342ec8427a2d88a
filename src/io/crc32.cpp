// CRC-32 of eight bytes at a time, with one table per distance to the end ("slicing by 8").
#include "io/crc32.h"

#include <array>

namespace aerie {
namespace {

constexpr size_t kSlice = 8;
using Tables = std::array<std::array<uint32_t, 256>, kSlice>;

constexpr Tables make_tables() {
    Tables tables = {};
    for (uint32_t byte = 0; byte < 256; ++byte) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; ++bit) crc = (crc & 1 ? 0xEDB88320u : 0) ^ crc >> 1;
        tables[0][byte] = crc;
    }
    // tables[i][byte] is the CRC of `byte` followed by `i` zero bytes.
    for (size_t i = 1; i < kSlice; ++i) {
        for (size_t byte = 0; byte < 256; ++byte) {
            const uint32_t crc = tables[i - 1][byte];
            tables[i][byte] = tables[0][crc & 0xFF] ^ crc >> 8;
        }
    }
    return tables;
}

constexpr Tables kTables = make_tables();

}  // namespace

uint32_t crc32(uint32_t crc, std::span<const std::byte> bytes) {
    crc = ~crc;
    for (; bytes.size() >= kSlice; bytes = bytes.subspan(kSlice)) {
        uint32_t next = 0;
        for (size_t i = 0; i < kSlice; ++i) {
            const uint32_t mixed = i < 4 ? crc >> (8 * i) & 0xFF : 0;
            next ^= kTables[kSlice - 1 - i][mixed ^ uint32_t(bytes[i])];
        }
        crc = next;
    }
    for (const std::byte byte : bytes) crc = kTables[0][(crc ^ uint32_t(byte)) & 0xFF] ^ crc >> 8;
    return ~crc;
}

}  // namespace aerie
