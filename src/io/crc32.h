// The checksum of zip files: CRC-32 with the reflected polynomial 0xEDB88320.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace aerie {

// Of bytes that come in pieces: `crc` is that of those before, 0 at first.
uint32_t crc32(uint32_t crc, std::span<const std::byte> bytes);

}  // namespace aerie
