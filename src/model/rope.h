// Rotary position embeddings: the angle of a position, also where a model reaches further than it
// was trained.
#pragma once

#include <vector>

#include "backend/tensor_plan.h"
#include "io/json.h"

namespace aerie {

class Fields;
struct ModelConfig;
struct Vector;

// Pair i of a head of size d turns by position * frequency(i), which is theta^(-2i / d), scaled.
struct Rope {
    enum class Scaling {
        none,
        linear,   // every frequency through `factor`
        llama3,   // slow ones; fast ones stay; between them a blend by wavelength
        yarn,     // the same by turns within the trained context (YaRN, section 3.2)
        factors,  // every frequency through its own of `factors`: as GGUF files say it
    };
    double theta = 10000;
    Scaling scaling = Scaling::none;
    double factor = 1;
    int trained_context = 0;  // positions
    // llama3: wavelengths longer than trained_context / low are slow, shorter than / high fast.
    double low = 1, high = 4;
    // yarn: pairs that turn more often than `fast` are fast, less often than `slow` are slow; which
    // these are is rounded to whole pairs unless `exact`. Cosines and sines times `attention`.
    double fast = 32, slow = 1;
    bool exact = false;
    double attention = 1;
    std::vector<float> factors;  // head_dim / 2

    double frequency(int pair, int head_dim) const;
    double plain_frequency(int pair, int head_dim) const;  // not scaled
    bool operator==(const Rope&) const = default;
};

// Of config.json, in the spellings of all releases; `context`: positions that the model takes.
// Throws Error naming the field.
Rope parse_rope(const Fields& fields, int context);

// As rope_scaling of a config.json says it; null: nothing is scaled.
Json rope_json(const Rope& rope);

// The same frequencies with a factor for each pair, as GGUF says what it has no other words for.
Rope with_factors(const Rope& rope, int head_dim);

// RoPE table F32 [positions, head_dim] of a model's attention: cosines of the angles, then sines.
// Frequencies and angles are rounded to f32 as the training frameworks do. Where heads are padded
// (model/padded_heads.h), the added pairs do not turn, and all values carry what makes of the scale
// that attention takes, 1 / sqrt(head_dim), that of the true size.
Vector make_rope_table(Backend& be, int positions, const ModelConfig& config);

}  // namespace aerie
