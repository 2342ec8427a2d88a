// SHA-256 (FIPS 180-4), for names and files that somebody might forge.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace aerie {

class Sha256 {
  public:
    void add(std::string_view bytes);
    // The hash of all bytes that were added, as 64 hexadecimal digits; ends the object's use.
    std::string digest();

  private:
    void block(const unsigned char* bytes);

    std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    std::array<unsigned char, 64> waiting_ = {};  // bytes of a block that is not full
    size_t waiting_bytes_ = 0;
    uint64_t all_bytes_ = 0;
};

std::string sha256(std::string_view bytes);

}  // namespace aerie
