// Building blocks of the options*.cpp files: values are checked, and refused in plain words.
#pragma once

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/ascii.h"
#include "core/pack_blocks.h"
#include "core/utf8.h"
#include "options.h"

namespace aerie {

template <typename Value>
using Choices = std::vector<std::pair<std::string, Value>>;

inline Choices<DType> choices_of(std::span<const DType> types) {
    Choices<DType> choices;
    for (DType type : types) choices.emplace_back(name(type), type);
    return choices;
}
inline const Choices<DType> kWeightChoices = choices_of(kWeightTypes);
inline constexpr const char* kModelHelp =
    "folder, .gguf file, bundled name, org/name in the Hugging Face cache, or hf:ORG/NAME[:QUANT], "
    "which is downloaded if the cache lacks it; -hf ORG/NAME says the same (default: smollm2)";

[[noreturn]] inline void refuse(const std::string& flag, const std::string& expected,
                                const std::string& text) {
    throw CLI::ValidationError(flag, "expected " + expected + ", not " + in_quotes(text));
}

// A check with a message that says what was expected. Its empty description keeps it out of the
// help.
inline CLI::Validator expect(const std::string& what,
                             std::function<bool(const std::string&)> accepts) {
    return CLI::Validator(
        [=](const std::string& text) {
            return accepts(text) ? std::string() : "expected " + what + ", not " + in_quotes(text);
        },
        "");
}

template <typename Integer>
struct Range {
    Integer low, high;
};

// An option with a whole number as its value. Always decimal: CLI11 would read 010 as eight.
// `what` names the number in errors.
template <typename To, typename Integer>
CLI::Option* add_whole(CLI::App& app, const std::string& flags, To& to, Range<Integer> range,
                       const std::string& help, const std::string& what = "a whole number") {
    const std::string name = flags.substr(flags.rfind(',') + 1);
    const auto read = [name, range, what, &to](const std::string& text) {
        Integer value = 0;
        const char* end = text.data() + text.size();
        const auto [rest, error] = std::from_chars(text.data(), end, value);
        if (error != std::errc() || rest != end || value < range.low || value > range.high)
            refuse(
                name,
                what + " from " + std::to_string(range.low) + " to " + std::to_string(range.high),
                text);
        to = value;
    };
    return app.add_option_function<std::string>(flags, read, help)->type_name("N");
}

// The number that the whole text is; NaN if it is none.
inline double decimal(const std::string& text) {
    double value = 0;
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, value);
    return error == std::errc() && rest == end ? value : NAN;
}

inline CLI::Validator number() {
    return expect("a number", [](const std::string& text) { return std::isfinite(decimal(text)); });
}

inline CLI::Validator number_from(double least, const std::string& what) {
    return expect(what, [least](const std::string& text) {
        return std::isfinite(decimal(text)) && decimal(text) >= least;
    });
}

// An option with one of a few names as its value, in any case. `former`: names that are understood,
// but not shown.
template <typename To, typename Value>
void add_choice(CLI::App& app, const std::string& flag, To& to, Choices<Value> choices,
                const std::string& help, const Choices<Value>& former = {}) {
    std::string names;
    for (const auto& choice : choices) names += (names.empty() ? "" : "|") + choice.first;
    choices.insert(choices.end(), former.begin(), former.end());
    const auto choose = [flag, names, choices, &to](const std::string& text) {
        const std::string asked = lower_ascii(text);
        std::string begin;  // the choice that the text goes on from, as q4_k_m does from q4_k
        for (const auto& [name, value] : choices) {
            if (name == asked) {
                to = value;
                return;
            }
            if (asked.starts_with(name + "_")) begin = name;
        }
        if (!begin.empty())
            throw CLI::ValidationError(flag, in_quotes(text) +
                                                 " names a mixture of types in a "
                                                 "file: take " +
                                                 begin);
        refuse(flag, names, text);
    };
    app.add_option_function<std::string>(flag, choose, help)->type_name(names);
}

// --threads, --weights, --kv.
void add_type_options(CLI::App& app, ModelOptions& options);
// The same, and --device.
void add_device_options(CLI::App& app, ModelOptions& options);
// All flags that say what drafts, and how.
void add_draft_options(CLI::App& app, ModelOptions& options);
// The flags that name a head and say how it is read; --tree.
void add_head_options(CLI::App& app, ModelOptions& options);
void add_tree_option(CLI::App& app, ModelOptions& options);
// The names of the drafters that are `wanted`.
Choices<std::string> draft_choices(bool (*wanted)(const DraftMethod&));
// "60,6,10" -> a shape within limits; "auto" -> nullopt.
std::optional<TreeShape> parse_tree(const std::string& text);
LookaheadShape parse_lookahead(const std::string& text);

// Flags about prompts and conversations, in options_text.cpp.
void add_prompt(CLI::App& app, std::optional<std::string>& prompt,
                std::optional<std::string>& file);
void add_conversation(CLI::App& app, GenerateOptions& options);
void add_tokenize(CLI::App& app, TokenizeOptions& options);
void add_render(CLI::App& app, RenderOptions& options);

// Flags of a command that generates text: sampling; context, device, types and drafting.
void add_sampling_options(CLI::App& app, SamplingOptions& options);
void add_model_options(CLI::App& app, ModelOptions& options);

void add_chat(CLI::App& app, ChatOptions& options);    // in options_chat.cpp
void add_serve(CLI::App& app, ServeOptions& options);  // in options_serve.cpp
void add_train(CLI::App& app, TrainOptions& options);  // in options_train.cpp

// Flags of the commands that measure, in options_measure.cpp.
void add_perplexity(CLI::App& app, PerplexityOptions& options);
void add_synth(CLI::App& app, SynthOptions& options);
void add_convert(CLI::App& app, ConvertOptions& options);
void add_bench(CLI::App& app, BenchOptions& options);
void add_compare(CLI::App& app, CompareOptions& options);

}  // namespace aerie
