// Rotary position embeddings: the angle of a position, also for models with a context longer than
// that of their first training.
#pragma once

#include <vector>

#include "backend/tensor_plan.h"
#include "io/json.h"

namespace aerie {

class Fields;
struct ModelConfig;
struct Vector;

// Pair i of a head of size d rotates by position * frequency(i): theta^(-2i / d), then scaled.
struct Rope {
    enum class Scaling {
        none,
        linear,   // every frequency is divided by `factor`
        llama3,   // slow ones are; fast ones stay; a blend by wavelength in between
        yarn,     // the same by rotations within the trained context (YaRN, section 3.2)
        factors,  // each frequency is divided by its own of `factors`, as in GGUF files
    };
    double theta = 10000;
    Scaling scaling = Scaling::none;
    double factor = 1;
    int trained_context = 0;  // positions
    // llama3: wavelengths longer than trained_context / low are slow, shorter than / high fast.
    double low = 1, high = 4;
    // yarn: pairs that rotate more often than `fast` times are fast, less often than `slow` times
    // slow; the borders are rounded to whole pairs unless `exact`. Cosines and sines are multiplied
    // by `attention`.
    double fast = 32, slow = 1;
    bool exact = false;
    double attention = 1;
    std::vector<float> factors;  // head_dim / 2

    double frequency(int pair, int head_dim) const;
    double plain_frequency(int pair, int head_dim) const;  // before scaling
    bool operator==(const Rope&) const = default;
};

// Parses a config.json in the spellings of all releases; `context`: positions that the model takes.
// Throws Error naming the field.
Rope parse_rope(const Fields& fields, int context);

// As rope_scaling of a config.json; null: nothing is scaled.
Json rope_json(const Rope& rope);

// The same frequencies by a factor for each pair: GGUF has no other keys for some scalings.
Rope with_factors(const Rope& rope, int head_dim);

// RoPE table F32 [positions, head_dim] for a model's attention: cosines of the angles, then sines.
// Frequencies and angles are rounded to f32 as the training frameworks do. If heads are padded
// (model/padded_heads.h), the added pairs do not rotate, and all values are scaled so that
// attention's 1 / sqrt(head_dim) amounts to that of the true size.
Vector make_rope_table(Backend& be, int positions, const ModelConfig& config);

}  // namespace aerie
