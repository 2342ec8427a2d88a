// Keys for Backend::replay. Two owners never share a key, and a key names everything that its
// recording has fixed.
#pragma once

#include <atomic>
#include <cstdint>
#include <initializer_list>

namespace aerie {

class ReplayKeys {
  public:
    ReplayKeys() : owner_(next_owner()) {}

    // A key for everything that the recorded ops depend on beyond the contents of their tensors:
    // numbers of rows, offsets, parameters.
    uint64_t of(std::initializer_list<uint64_t> fixed) const {
        uint64_t key = owner_;
        for (uint64_t value : fixed) key = mix(key ^ mix(value));
        return key;
    }

  private:
    static uint64_t next_owner() {
        static std::atomic<uint64_t> count{0};
        return mix(++count);
    }
    // The finalizer of SplitMix64.
    static uint64_t mix(uint64_t x) {
        x += 0x9e3779b97f4a7c15u;
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
        x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
        return x ^ (x >> 31);
    }

    uint64_t owner_;
};

}  // namespace aerie
