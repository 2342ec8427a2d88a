// Op KvCompact: one dispatch per layer. Each layer has memory of its own, so no barrier comes
// between the dispatches. A single dispatch for all layers would need buffer addresses, which
// Vulkan 1.2 does not guarantee.
#include "params.h"
#include "vulkan/backend.h"
#include "vulkan/glue.h"

namespace aerie::vulkan {

template <>
void VulkanBackend::execute(const KvCompact& op) {
    for (const KvLayer& kv : op.layers) {
        const int words = int(size_bytes(kv.k.dtype, size_t(kv.k.cols)) / 4);
        const CompactParams params = {.words = uint32_t(words),
                                      .count = uint32_t(op.moves.rows),
                                      .k_stride = stride_words(kv.k),
                                      .v_stride = stride_words(kv.v),
                                      .pages_stride = stride_words(kv.page_table)};
        dispatch({"kv_compact"}, params,
                 {writes(kv.k), writes(kv.v), reads(op.moves), reads(kv.page_table)},
                 {groups(words, kGroupSize)}, double(words) * op.moves.rows);
    }
}

}  // namespace aerie::vulkan
