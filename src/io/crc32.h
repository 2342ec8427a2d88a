// The checksum of zip files: CRC-32 with the reflected polynomial 0xEDB88320.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace aerie {

// Continues a checksum: `crc` is that of the bytes before `bytes`, 0 if there are none.
uint32_t crc32(uint32_t crc, std::span<const std::byte> bytes);

}  // namespace aerie
