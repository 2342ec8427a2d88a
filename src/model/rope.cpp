// Frequencies scaled as transformers defines it.
#include "model/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>

#include "core/float_environment.h"
#include "core/utf8.h"
#include "model/config.h"
#include "model/config_fields.h"
#include "model/weights.h"

namespace aerie {

namespace {

double llama3_frequency(const Rope& rope, double frequency) {
    const double turns = rope.trained_context * frequency / (2 * std::numbers::pi);
    if (turns < rope.low) return frequency / rope.factor;
    if (turns > rope.high) return frequency;
    const double kept = (turns - rope.low) / (rope.high - rope.low);
    return (1 - kept) * frequency / rope.factor + kept * frequency;
}

// The pair, as a real number, that rotates `turns` times within the trained context.
double pair_that_turns(const Rope& rope, double turns, int head_dim) {
    return head_dim * std::log(rope.trained_context / (turns * 2 * std::numbers::pi)) /
           (2 * std::log(rope.theta));
}

double yarn_frequency(const Rope& rope, double frequency, int pair, int head_dim) {
    double first = pair_that_turns(rope, rope.fast, head_dim);
    double last = pair_that_turns(rope, rope.slow, head_dim);
    if (!rope.exact) first = std::floor(first), last = std::ceil(last);
    first = std::max(first, 0.0);
    last = std::min(last, head_dim - 1.0);
    if (first == last) last += 0.001;
    const double scaled = std::clamp((pair - first) / (last - first), 0.0, 1.0);
    return frequency / rope.factor * scaled + frequency * (1 - scaled);
}

// YaRN's attention factor (section 3.4), which scales cosines and sines.
double yarn_attention(double factor, double scale) {
    return factor <= 1 ? 1 : 0.1 * scale * std::log(factor) + 1;
}

double required(const Fields& fields, const char* key, double low, double high) {
    const std::optional<double> value = fields.number(key, low, high);
    if (!value) fields.fail(std::string("'") + key + "' is missing");
    return *value;
}

// Members that say which share of each head rotates.
constexpr const char* kShares[] = {"partial_rotary_factor", "rotary_pct", "rotary_percent",
                                   "rope_percent"};

bool is_share_of_head(const std::string& name) {
    return std::find(std::begin(kShares), std::end(kShares), name) != std::end(kShares);
}

void check_whole_heads(const Fields& fields) {
    for (const char* key : kShares)
        if (fields.find(key) && fields.number(key, 0, 1) != 1.0)
            fields.fail(in_quotes(key) +
                        " is not 1: rotation of a part of each head is not implemented");
}

void check_known(const Fields& fields) {
    static const std::set<std::string> known = {"rope_type",
                                                "type",
                                                "rope_theta",
                                                "factor",
                                                "original_max_position_embeddings",
                                                "beta_fast",
                                                "beta_slow",
                                                "mscale",
                                                "mscale_all_dim",
                                                "attention_factor",
                                                "truncate",
                                                "low_freq_factor",
                                                "high_freq_factor",
                                                "finetuned",
                                                "factors"};
    for (const auto& [name, value] : *fields.json().object())
        if (!is_share_of_head(name) && !known.contains(name))
            fields.fail(in_quotes(name) + " is set; it is not implemented");
}

void parse_trained_context(Rope& rope, const Fields& fields, int context) {
    constexpr const char* kKey = "original_max_position_embeddings";
    rope.trained_context = fields.integer(kKey, 2, 1 << 24, context);
}

void parse_yarn(Rope& rope, const Fields& fields, int context) {
    parse_trained_context(rope, fields, context);
    rope.factor = fields.number("factor", 1, 1e6).value_or(double(context) / rope.trained_context);
    rope.fast = fields.number("beta_fast", 1e-3, 1e6).value_or(32);
    rope.slow = fields.number("beta_slow", 1e-3, 1e6).value_or(1);
    if (rope.fast <= rope.slow) fields.fail("'beta_fast' must be above 'beta_slow'");
    rope.exact = !fields.boolean("truncate", true);
    const double scale = fields.number("mscale", 0, 100).value_or(0);
    const double all = fields.number("mscale_all_dim", 0, 100).value_or(0);
    rope.attention = scale > 0 && all > 0
                         ? yarn_attention(rope.factor, scale) / yarn_attention(rope.factor, all)
                         : yarn_attention(rope.factor, 1);
    rope.attention = fields.number("attention_factor", 1e-3, 1e3).value_or(rope.attention);
}

void parse_llama3(Rope& rope, const Fields& fields, int context) {
    parse_trained_context(rope, fields, context);
    rope.factor = required(fields, "factor", 1, 1e6);
    rope.low = required(fields, "low_freq_factor", 1e-3, 1e6);
    rope.high = required(fields, "high_freq_factor", 1e-3, 1e6);
    if (rope.high <= rope.low) fields.fail("'high_freq_factor' must be above 'low_freq_factor'");
}

void parse_factors(Rope& rope, const Fields& fields) {
    constexpr float kLeast = 1e-6f, kMost = 1e6f;
    const Json* list = fields.find("factors");
    if (!list || !list->array()) fields.fail("'factors' is no list");
    for (const Json& factor : *list->array()) {
        rope.factors.push_back(float(factor.number()));
        if (!(rope.factors.back() >= kLeast && rope.factors.back() <= kMost))
            fields.fail("'factors' must be numbers from 0.000001 to 1000000");
    }
}

void parse_scaling(Rope& rope, const Fields& fields, int context) {
    check_whole_heads(fields);
    check_known(fields);
    const std::string type = fields.string("rope_type", fields.string("type", "default"));
    if (type == "default") {
        if (fields.find("factor")) fields.fail("'factor' is set, but no type of scaling");
        return;
    }
    // "dynamic" changes nothing within the model's context, and no sequence is longer.
    if (type == "dynamic") return;
    if (type == "linear") {
        rope.scaling = Rope::Scaling::linear;
        rope.factor = required(fields, "factor", 1, 1e6);
    } else if (type == "llama3") {
        rope.scaling = Rope::Scaling::llama3;
        parse_llama3(rope, fields, context);
    } else if (type == "yarn") {
        rope.scaling = Rope::Scaling::yarn;
        parse_yarn(rope, fields, context);
    } else if (type == "factors") {
        rope.scaling = Rope::Scaling::factors;
        parse_factors(rope, fields);
    } else {
        fields.fail("RoPE of type " + in_quotes(type) + " is not implemented");
    }
}

}  // namespace

double Rope::plain_frequency(int pair, int head_dim) const {
    return 1.0 / std::pow(theta, 2.0 * pair / head_dim);
}

double Rope::frequency(int pair, int head_dim) const {
    const double plain = plain_frequency(pair, head_dim);
    switch (scaling) {
        case Scaling::linear:
            return plain / factor;
        case Scaling::llama3:
            return llama3_frequency(*this, plain);
        case Scaling::yarn:
            return yarn_frequency(*this, plain, pair, head_dim);
        case Scaling::factors:
            return plain / factors.at(size_t(pair));
        default:
            return plain;
    }
}

// Older configurations have the scaling in rope_scaling and the base beside it; transformers 5
// writes both into rope_parameters.
Rope parse_rope(const Fields& fields, int context) {
    const FloatEnvironment environment;
    std::optional<Rope> found;
    check_whole_heads(fields);
    std::optional<double> theta = fields.number("rope_theta", 1, 1e12);
    for (const char* key : {"rope_scaling", "rope_parameters"}) {
        if (!fields.find(key)) continue;
        const Fields inner = fields.object(key);
        if (const std::optional<double> own = inner.number("rope_theta", 1, 1e12)) {
            if (theta && *own != *theta) inner.fail("'rope_theta' differs from the one above");
            theta = own;
        }
        Rope rope;
        parse_scaling(rope, inner, context);
        // An object without a type gives the base at most.
        if (!inner.find("rope_type") && !inner.find("type")) continue;
        if (found && *found != rope)
            inner.fail("says another scaling than 'rope_scaling'; only one of them can be right");
        found = rope;
    }
    Rope rope = found.value_or(Rope());
    rope.theta = theta.value_or(10000);
    if (rope.scaling == Rope::Scaling::yarn && rope.theta <= 1)
        fields.fail("'rope_theta' must be above 1 for yarn");
    return rope;
}

Json rope_json(const Rope& rope) {
    Json json = Json::Object{{"factor", rope.factor}};
    const auto trained = [&] {
        json.set("original_max_position_embeddings", rope.trained_context);
    };
    switch (rope.scaling) {
        case Rope::Scaling::none:
            return {};
        case Rope::Scaling::linear:
            json.set("rope_type", "linear");
            break;
        case Rope::Scaling::llama3:
            json.set("rope_type", "llama3");
            json.set("low_freq_factor", rope.low);
            json.set("high_freq_factor", rope.high);
            trained();
            break;
        case Rope::Scaling::yarn:
            json.set("rope_type", "yarn");
            json.set("beta_fast", rope.fast);
            json.set("beta_slow", rope.slow);
            json.set("truncate", !rope.exact);
            json.set("attention_factor", rope.attention);
            trained();
            break;
        case Rope::Scaling::factors:
            return Json::Object{{"rope_type", "factors"},
                                {"factors", Json::Array(rope.factors.begin(), rope.factors.end())}};
    }
    return json;
}

Rope with_factors(const Rope& rope, int head_dim) {
    const FloatEnvironment environment;
    Rope made;
    made.theta = rope.theta;
    made.scaling = Rope::Scaling::factors;
    for (int pair = 0; pair < head_dim / 2; ++pair)
        made.factors.push_back(
            float(made.plain_frequency(pair, head_dim) / rope.frequency(pair, head_dim)));
    return made;
}

namespace {

// The factor for q and for k that gives their product the scale of the true size. The norms of
// padded heads divide by the square root of a mean over more elements (SelfAttention adapts their
// epsilon), so their outputs are too large by the same ratio.
double padding_scale(const ModelConfig& config) {
    const double ratio = double(config.attention.head_dim) / config.size_of_head();
    return config.qk_norm ? std::pow(ratio, -0.25) : std::pow(ratio, 0.25);
}

}  // namespace

Vector make_rope_table(Backend& be, int positions, const ModelConfig& config) {
    const FloatEnvironment environment;
    const Rope& rope = config.rope;
    const int head_dim = config.attention.head_dim, half = head_dim / 2;
    const int size = config.size_of_head();
    const double scale = size == head_dim ? rope.attention : rope.attention * padding_scale(config);
    std::vector<float> table(size_t(positions) * size_t(head_dim));
    for (int i = 0; i < half; ++i) {
        const float frequency = i < size / 2 ? float(rope.frequency(i, size)) : 0.0f;
        for (int position = 0; position < positions; ++position) {
            const float angle = float(position) * frequency;
            float* row = &table[size_t(position) * size_t(head_dim)];
            row[i] = float(std::cos(double(angle)) * scale);
            row[half + i] = float(std::sin(double(angle)) * scale);
        }
    }
    return upload_floats(be, table, positions, head_dim);
}

}  // namespace aerie
