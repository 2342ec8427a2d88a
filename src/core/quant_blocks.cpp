// Takes blocks of any type apart.
#include "core/quant_blocks.h"

#include <cstring>

#include "core/take_apart.h"

namespace aerie {
namespace {

template <class Block>
constexpr bool kHasItsSize = sizeof(Block) == unit_bytes(Block::kType);
static_assert(kHasItsSize<BlockQ8_0> && kHasItsSize<BlockQ4_0> && kHasItsSize<BlockQ4_1> &&
              kHasItsSize<BlockQ5_0> && kHasItsSize<BlockQ5_1> && kHasItsSize<BlockIQ4_NL> &&
              kHasItsSize<BlockQ2_K> && kHasItsSize<BlockQ3_K> && kHasItsSize<BlockQ4_K> &&
              kHasItsSize<BlockQ5_K> && kHasItsSize<BlockQ6_K> && kHasItsSize<BlockIQ4_XS>);

}  // namespace

BlockParts take_apart(DType type, const std::byte* from) {
    BlockParts parts;
    with_block(type, [&](auto block) {
        std::memcpy(&block, from, sizeof(block));
        take_apart(parts, block);
    });
    return parts;
}

}  // namespace aerie
