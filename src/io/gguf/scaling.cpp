// Scaling is a type and its numbers, or a tensor with a factor for each frequency.
#include "io/gguf/scaling.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace aerie {

namespace {

// Divisors of RoPE's frequencies; empty if the file has none. Throws Error.
std::vector<float> factors_of(const Gguf& gguf) {
    const GgufTensor* tensor = gguf.find("rope_freqs.weight");
    if (!tensor) return {};
    constexpr int64_t kMost = 1024;
    if (tensor->shape.size() != 1 || tensor->shape[0] > kMost)
        throw Error(gguf.describe(*tensor) + " has shape " + tensor->shape_text() +
                    ", expected [head size / 2]");
    std::vector<float> factors(size_t(tensor->shape[0]));
    gguf.read_rows(*tensor, 0, factors);
    for (const float factor : factors)
        if (!(factor >= 1e-6f && factor <= 1e6f))
            throw Error(gguf.describe(*tensor) + " must hold numbers from 0.000001 to 1000000");
    return factors;
}

// attention_factor is the product of YaRN's own factor and the file's attn_factor.
Json yarn(const GgufKeys& keys, double factor) {
    Json scaling = Json::Object{{"rope_type", "yarn"}, {"factor", factor}};
    for (const auto& [gguf, hugging_face] : {std::pair("rope.scaling.yarn_beta_fast", "beta_fast"),
                                             {"rope.scaling.yarn_beta_slow", "beta_slow"}})
        if (keys.find(gguf)) scaling.set(hugging_face, keys.number(gguf));
    double own = keys.number("rope.scaling.attn_factor", 1);
    own = keys.number("rope.scaling.yarn_attn_factor", own);
    if (own != 1)
        scaling.set("attention_factor", own * (1 + 0.1 * std::log(std::max(factor, 1.0))));
    if (keys.number("rope.scaling.yarn_ext_factor", 1) != 1)
        keys.fail("rope.scaling.yarn_ext_factor", "is not 1; that is not implemented");
    return scaling;
}

}  // namespace

Json gguf_scaling(const GgufKeys& keys) {
    const std::vector<float> factors = factors_of(keys.gguf());
    const double linear = keys.number("rope.scale_linear", 1);  // key of older files
    std::string type = linear == 1 ? "none" : "linear";
    if (keys.find("rope.scaling.type")) type = keys.string("rope.scaling.type");
    const double factor = keys.number("rope.scaling.factor", linear);
    Json scaling;
    if (type == "linear") {
        if (factor != 1) scaling = Json::Object{{"rope_type", "linear"}, {"factor", factor}};
    } else if (type == "yarn") {
        scaling = yarn(keys, factor);
        if (keys.find("rope.scaling.original_context_length"))
            scaling.set("original_max_position_embeddings",
                        keys.integer("rope.scaling.original_context_length"));
    } else if (type != "none") {
        keys.fail("rope.scaling.type", "is " + in_quotes(type) + "; that is not implemented");
    }
    if (factors.empty()) return scaling;
    if (!scaling.is_null()) keys.fail("rope.scaling.type", "stands beside rope_freqs.weight");
    return Json::Object{{"rope_type", "factors"},
                        {"factors", Json::Array(factors.begin(), factors.end())}};
}

}  // namespace aerie
