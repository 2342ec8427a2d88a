// A hash that is the same on every machine: for names of cache files, checksums and seeds.
#pragma once

#include <cstdint>
#include <string_view>

namespace aerie {

// FNV-1a, 64 bits.
inline uint64_t fnv1a(std::string_view bytes) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (unsigned char byte : bytes) hash = (hash ^ byte) * 0x100000001b3u;
    return hash;
}

}  // namespace aerie
