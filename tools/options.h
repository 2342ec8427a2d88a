// The command line of the `aerie` program, parsed; CLI11 stays in options.cpp.
#pragma once

#include <climits>
#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <vector>

#include "draft/heads/kinds.h"
#include "engine/model_files.h"
#include "engine/sampling.h"
#include "model/make/shapes.h"

namespace aerie {

constexpr int kMaxThreads = 1024;

// The flags of every command that opens a model. locate() settles those that are unset.
struct ModelOptions {
    std::optional<std::string> model, head, device;
    std::optional<std::string> draft;  // a row of draft/methods.h, or its former name
    std::optional<int> threads, context;
    std::optional<DType> weights, draft_weights;
    DType kv = DType::F16;
    bool profile = false, offline = false;
    std::vector<std::string> given;  // the long names of all flags that were given
    DraftOptions drafting;           // except the method
    HeadOptions head_options;
};

// Flags that make a conversation of a prompt.
struct ConversationOptions {
    bool on = false;
    std::optional<std::string> system, messages, chat_template;  // each implies `on`

    bool wanted() const { return on || system || messages || chat_template; }
};

// Unset: the model's own value.
struct SamplingOptions {
    std::optional<double> temperature, top_p, min_p;
    std::optional<double> repetition_penalty, frequency_penalty, presence_penalty;
    std::optional<int> top_k;
    std::optional<uint64_t> seed;
};

struct GenerateOptions {
    ModelOptions model;
    std::optional<std::string> prompt, prompt_file;  // "-": stdin
    std::optional<std::vector<int>> prompt_ids;
    ConversationOptions chat;
    bool no_special = false, ignore_eos = false;
    int max_tokens = -1;
    SamplingOptions sampling;
    std::vector<std::string> stops;
    bool logprobs = false, json = false, quiet = false, compare_plain = false;
    bool shade = false;
    // Many prompts instead of one: their file, where the answers go (unset: stdout), how many are
    // answered in one pass.
    std::optional<std::string> prompts, output;
    int parallel = 8;
};

struct ChatOptions {
    ModelOptions model;
    std::optional<std::string> message;  // the first one
    std::optional<std::string> system, chat_template;
    int max_tokens = -1;  // per answer
    SamplingOptions sampling;
    bool stats = false, shade = false, hide_thinking = false, learn = false;
    bool single_turn = false;  // ends after the answer to `message`
};

struct InfoOptions {
    ModelOptions model;
    bool json = false;
};

// `aerie devices` and `aerie models`.
struct ListingOptions {
    bool json = false;
};

struct ModelsOptions {
    bool json = false;
    std::optional<std::string> action, name;  // "rm" and the model to delete
    bool yes = false;                         // deletes without asking
};

struct CacheOptions {
    bool json = false, clear = false;
};

struct PerplexityOptions {
    ModelOptions model;
    std::string file;
    int window = 512;
    bool json = false, quiet = false;
};

struct SynthOptions {
    std::string like;  // name of a shape
    ShapeChanges changes;
    std::string folder;
    const DraftHead* head = &draft_heads().front();
    DType weights = DType::F16;
    uint64_t seed = 1;
    bool quiet = false;
};

struct ConvertOptions {
    std::optional<std::string> model;
    std::string output;            // a GGUF file
    std::optional<DType> weights;  // unset: each keeps its own type
    bool quiet = false;
};

struct BenchOptions {
    ModelOptions model;
    std::optional<std::string> like;  // a shape of random weights in place of a model
    ShapeChanges changes;
    std::vector<int> rows;       // rows of the passes to time; empty: the usual ones
    std::vector<int> sequences;  // numbers of sequences to decode together
    int prompt_tokens = 128;
    std::optional<double> tau;
    double seconds = 60;
    std::optional<std::string> html;
    bool json = false, quiet = false;
};

struct TrainOptions {
    ModelOptions model;
    std::string folder;
    bool is_eagle2 = false, goes_on = false, quiet = false;
    std::vector<std::string> prompts, texts;
    std::optional<std::string> init;
    int steps = 0;
    std::optional<double> hours, rate;
    int patience = 10, max_prompts = INT_MAX, max_answer = 512, parallel = 16;
    double temperature = 0;
    int draft_vocab = 8192, depths = 5, batch_rows = 2048, max_text = 1024;
    uint64_t seed = 1;
};

struct CompareOptions {
    ModelOptions model;                              // except its device
    std::vector<std::string> devices;                // the reference first
    std::optional<std::string> prompt, prompt_file;  // neither: built-in prompts
    int max_tokens = 64;
    std::optional<std::string> html;
    bool json = false, quiet = false;
};

struct ServeOptions {
    ModelOptions model;
    std::string host = "127.0.0.1";
    int port = 8080;
    std::optional<std::string> api_key, alias;
    int parallel = 4, keep = 4, drain_seconds = 30;
    std::optional<int> kv_tokens;
    std::vector<std::string> hosts, origins;  // additional ones to allow
    bool learn = false, strict_model = false, quiet = false;
};

struct ForgetOptions {};

struct CompletionOptions {
    std::string shell;
};

struct PullCommandOptions {
    std::string name;
    bool quiet = false;
};

struct TokenizeOptions {
    std::optional<std::string> model, prompt, prompt_file, strings, decode;
    bool no_special = false, counts = false, json = false;
};

struct RenderOptions {
    std::optional<std::string> model, chat_template, bos, eos;
    std::string conversation;
    bool add_generation_prompt = false, json = false;
    std::optional<std::tm> now;
};

// The command that was given; none of them if help or the version was asked for.
struct CommandLine {
    std::string text;  // help, the version or a completion script, to be printed
    std::optional<GenerateOptions> generate;
    std::optional<ChatOptions> chat;
    std::optional<TokenizeOptions> tokenize;
    std::optional<RenderOptions> render;
    std::optional<InfoOptions> info;
    std::optional<ListingOptions> devices;
    std::optional<ModelsOptions> models;
    std::optional<CacheOptions> cache;
    std::optional<ForgetOptions> forget;
    std::optional<CompletionOptions> completion;
    std::optional<PullCommandOptions> pull;
    std::optional<PerplexityOptions> perplexity;
    std::optional<SynthOptions> synth;
    std::optional<ConvertOptions> convert;
    std::optional<BenchOptions> bench;
    std::optional<CompareOptions> compare;
    std::optional<ServeOptions> serve;
    std::optional<TrainOptions> train;
};

// Throws UsageError.
CommandLine parse_command_line(int argc, char** argv);

}  // namespace aerie
