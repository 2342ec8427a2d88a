#include "draft/heads/random_head.h"

#include "draft/heads/head.h"
#include "model/make/random_weights.h"

namespace aerie {

HeadConfig random_head_config(const DraftHead& kind, const ModelConfig& target) {
    HeadConfig config = kind.random.shape(target);
    config.kind = &kind;
    return config;
}

bool fill_without_weights(const HeadConfig& head, const NamedTensor& tensor, int64_t first,
                          std::span<std::byte> out) {
    const auto fill = head.kind->random.fill;
    return fill && fill(head, tensor, first, out);
}

Checkpoint random_head(const std::string& name, const HeadConfig& head, DType type, uint64_t seed) {
    const auto fill = [head, weights = RandomWeights(type, seed)](const NamedTensor& tensor, DType,
                                                                  size_t first,
                                                                  std::span<std::byte> out) {
        if (!fill_without_weights(head, tensor, int64_t(first), out))
            weights.fill(tensor.name, int64_t(first), out);
    };
    return Checkpoint::generated(name, head.kind->random.tensors(head, type), fill);
}

}  // namespace aerie
