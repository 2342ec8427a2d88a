// Heads with random weights, of the kinds that have a RandomHead.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "draft/heads/head_config.h"
#include "io/checkpoint.h"

namespace aerie {

// The configuration of such a head for this target.
HeadConfig random_head_config(const DraftHead& kind, const ModelConfig& target);

// Fills elements [first, ...) of a tensor that holds no weights, such as d2t. False: it holds
// weights, and nothing was done.
bool fill_without_weights(const HeadConfig& head, const NamedTensor& tensor, int64_t first,
                          std::span<std::byte> out);

// A checkpoint without files: a tensor is made when it is read.
Checkpoint random_head(const std::string& name, const HeadConfig& head, DType type, uint64_t seed);

}  // namespace aerie
