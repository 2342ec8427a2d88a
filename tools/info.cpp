// `aerie info`: a model's kind, tokens and memory, without loading it.
#include <algorithm>

#include "assumed.h"
#include "backend/registry.h"
#include "commands.h"
#include "core/platform.h"
#include "core/utf8.h"
#include "draft/heads/kinds.h"
#include "format.h"
#include "io/json.h"
#include "model/make/shapes.h"
#include "talk/model_sampling.h"
#include "terminal.h"
#include "text/chat_template.h"

namespace aerie {

namespace {

struct Line {
    const char* key;
    std::string label;
    size_t bytes;
};

std::string with_types(const std::string& label, const WeightTypes& types) {
    return types.empty() ? label : label + ", " + to_string(types);
}

// The names for the drafting model in reports.
struct DrafterName {
    const char *key, *weights_key, *role, *cache;
};
constexpr DrafterName kHeadName{"head", "head_weights", "head", "head"};
constexpr DrafterName kModelName{"draft_model", "draft_model_weights", "draft model", "draft"};

const DrafterName& drafter_name(const ModelFiles& files) {
    const bool is_model =
        files.head_config && files.head_config->kind->needs == DraftNeeds::language_model;
    return is_model ? kModelName : kHeadName;
}

std::vector<Line> memory_lines(const MemoryPlan& plan, const DrafterName& drafter) {
    const std::string role = drafter.role;
    return {
        {"target_weights", with_types("target weights", plan.target_types), plan.target_weights},
        {drafter.weights_key, with_types(role + " weights", plan.head_types), plan.head_weights},
        {"kv_cache", "KV cache", plan.kv_cache},
        {"scratch", "activations, " + std::string(drafter.cache) + " cache, scratch", plan.scratch},
        {"program", "program, tokenizer", plan.program},
        {"total", "total", plan.total()}};
}

Json types_json(const WeightTypes& types) {
    Json::Object json;
    for (const auto& [type, bytes] : types) json.emplace_back(aerie::name(type), uint64_t(bytes));
    return json;
}

// "Q4_K 61 %, Q6_K 38 %, F32 1 %": shares of the file's bytes, the largest first.
std::string file_types(const Checkpoint& checkpoint) {
    const FileTypes types = checkpoint.file_types();
    std::vector<std::pair<size_t, std::string>> sorted;
    size_t all = 0;
    for (const auto& [name, bytes] : types) {
        sorted.emplace_back(bytes, name);
        all += bytes;
    }
    std::sort(sorted.rbegin(), sorted.rend());
    std::string text;
    for (const auto& [bytes, name] : sorted) {
        text += (text.empty() ? "" : ", ") + name;
        if (sorted.size() > 1) text += format(" %.3g %%", 100 * double(bytes) / double(all));
    }
    return text + format(", %.1f MiB", double(all) / double(1 << 20));
}

Json file_json(const Checkpoint& checkpoint) {
    Json::Object json;
    for (const auto& [name, bytes] : checkpoint.file_types())
        json.emplace_back(name, uint64_t(bytes));
    return json;
}

Json model_json(const ModelConfig& config, const ModelSource& source) {
    const Checkpoint& checkpoint = source.tensors;
    Json json(Json::Object{{"path", source.path.string()},
                           {"architecture", config.architecture},
                           {"parameters", uint64_t(checkpoint.parameters())},
                           {"types", checkpoint.type_names()},
                           {"file_bytes", file_json(checkpoint)}});
    const Json sizes = sizes_json(config);
    for (const auto& [name, value] : *sizes.object()) json.set(name, value);
    return json;
}

// "FFN 14336", "8 experts of 14336, 2 of them for a token".
std::string ffn_of(const ModelConfig& config) {
    const ExpertConfig& experts = config.experts;
    if (experts.count == 0) return format("FFN %d", config.intermediate);
    return format("%d experts of %d, %d of them for a token", experts.count, experts.intermediate,
                  experts.chosen);
}

// The assumed context of a model, if its files do not give it; else empty.
std::string context_of(const ModelConfig& config) {
    if (!config.context_is_assumed) return "";
    return format("         a context of %d tokens is assumed: the file does not say\n",
                  config.context);
}

// `more`: a line about one kind of head; may be empty.
std::string model_lines(const char* role, const ModelConfig& config, const ModelSource& source,
                        const std::string& more = "") {
    const Checkpoint& checkpoint = source.tensors;
    return format("%-8s ", role) + source.path.string() + "\n" +
           format("         %s, %.1f M parameters, %d layer%s\n", config.architecture.c_str(),
                  double(checkpoint.parameters()) / 1e6, config.layers,
                  config.layers == 1 ? "" : "s") +
           format("         hidden %d, %s, %d heads of %d (%d for KV), vocabulary %d\n",
                  config.hidden, ffn_of(config).c_str(), config.attention.heads,
                  config.size_of_head(), config.attention.kv_heads, config.vocab) +
           (more.empty() ? "" : "         " + more + "\n") +
           "         in the file: " + file_types(checkpoint) + "\n";
}

std::string head_lines(const ModelFiles& files) {
    const HeadConfig& config = *files.head_config;
    const auto info = config.kind->info;
    return model_lines(drafter_name(files).role, config, *files.head, info ? info(config) : "");
}

// Two turns as the model's chat template writes them, or why it cannot.
struct TwoTurns {
    std::string text, problem;
};

TwoTurns two_turns(const Tokenizer& tokenizer) {
    Conversation conversation;
    conversation.add("user", "Hello.");
    conversation.add("assistant", "Hi.");
    conversation.add("user", "How are you?");
    conversation.now = platform::local_time();
    try {
        return {render_chat(tokenizer, conversation).text, ""};
    } catch (const Error& error) {
        return {"", error.what()};
    }
}

std::string tokenizer_lines(const Tokenizer& tokenizer) {
    const auto shown = [&](int id) {
        return id < 0 ? std::string("none") : in_quotes(tokenizer.bpe().text(id));
    };
    std::string lines = format("tokens   %d", tokenizer.size()) + ", BOS " +
                        shown(tokenizer.bos()) + ", EOS " + shown(tokenizer.eos()) + "\n";
    const TwoTurns turns = two_turns(tokenizer);
    if (!turns.problem.empty()) return lines + "chat     " + printable(turns.problem) + "\n";
    lines += "chat     ";
    for (const char c : turns.text) {
        lines += c;
        if (c == '\n') lines += "         ";
    }
    return lines + "\n";
}

Json tokenizer_json(const Tokenizer& tokenizer) {
    const TwoTurns turns = two_turns(tokenizer);
    Json json = Json::Object{
        {"tokens", tokenizer.size()}, {"bos", tokenizer.bos()}, {"eos", tokenizer.eos()}};
    json.set("chat", turns.problem.empty() ? Json(turns.text) : Json());
    return json;
}

bool fits(const MemoryPlan& plan, const Capabilities& device) {
    return device.problem.empty() && plan.total() <= device.memory_bytes;
}

// The memory of `aerie serve` with its defaults.
struct ServePlan {
    int conversations = 0, context = 0;  // the most, and the most tokens of each
    int64_t cache_tokens = 0;            // tokens of all conversations together
    MemoryPlan memory;
};

ServePlan serve_plan(LoadOptions load, const Backend& backend) {
    const ServeOptions options;
    load.sequences = options.parallel + options.keep;
    load.cache_tokens = kFittingCache;
    load.sequences_in_pass = options.parallel;
    ModelFiles files = ModelFiles::open(load);
    files.replace_unstorable(backend);
    files.fit_context(load, backend);
    return {load.sequences, files.context, files.cache_tokens, files.plan(load, backend)};
}

std::string serve_line(const ServePlan& plan) {
    return format("serve    %d conversations of up to %d tokens, %lld together: %.1f MiB in all\n",
                  plan.conversations, plan.context, static_cast<long long>(plan.cache_tokens),
                  double(plan.memory.total()) / double(1 << 20));
}

std::string fitting_line(const MemoryPlan& plan, int largest, const std::string& device) {
    std::string line = "fits     ";
    for (const Capabilities& one : list_devices())
        line += one.name + (fits(plan, one) ? ": yes, " : ": no, ") +
                format("%.1f GiB; ", double(one.memory_bytes) / double(1 << 30));
    return line + format("largest context on %s: %d\n", device.c_str(), largest);
}

std::string model_table(const ModelFiles& files, const Backend& backend,
                        const std::optional<Tokenizer>& tokenizer,
                        const std::vector<Line>& memory) {
    std::string table =
        model_lines("target", files.config, files.target) + context_of(files.config);
    if (files.head_config) table += head_lines(files);
    if (!files.draft_ids.empty())
        table +=
            format("         says %zu of %d tokens\n", files.draft_ids.size(), files.config.vocab);
    for (const ModelFiles& other : files.others) table += head_lines(other);
    table += tokenizer ? tokenizer_lines(*tokenizer) : "tokens   no tokenizer\n";
    table += "sampling " + in_words(model_sampling(generation_config(files.target))) + "\n";
    table += format("memory   on %s with a context of %d (model: %d)\n",
                    backend.capabilities().name.c_str(), files.context, files.config.context);
    for (const Line& line : memory)
        table += format("         %-34s %10.1f MiB\n", line.label.c_str(),
                        double(line.bytes) / double(1 << 20));
    return table;
}

}  // namespace

int run_info(const InfoOptions& options) {
    const LoadOptions runtime = locate(options.model);
    tell_unused(options.model, runtime.draft.method);
    ModelFiles files = ModelFiles::open(runtime);
    std::optional<Tokenizer> tokenizer;
    if (files.target.tokenizer) tokenizer = load_tokenizer(files);
    const auto backend = open_device(runtime.device, {runtime.threads});
    files.replace_unstorable(*backend);
    files.fit_context(runtime, *backend);
    const MemoryPlan plan = files.plan(runtime, *backend);
    const DrafterName& drafter = drafter_name(files);
    const std::vector<Line> memory = memory_lines(plan, drafter);
    const int largest = files.largest_context(runtime, *backend);
    const ServePlan serve = serve_plan(runtime, *backend);
    if (options.json) {
        Json::Object bytes;
        for (const Line& line : memory) bytes.emplace_back(line.key, uint64_t(line.bytes));
        Json result(Json::Object{{"schema", "aerie-info-1"},
                                 {"device", backend->capabilities().name},
                                 {"context", files.context},
                                 {"largest_context", largest},
                                 {"target", model_json(files.config, files.target)}});
        if (files.head_config) result.set(drafter.key, model_json(*files.head_config, *files.head));
        Json::Array others;
        for (const ModelFiles& other : files.others)
            others.push_back(model_json(*other.head_config, *other.head));
        if (!others.empty()) result.set("further_heads", std::move(others));
        if (tokenizer) result.set("tokenizer", tokenizer_json(*tokenizer));
        const Sampling sampling = model_sampling(generation_config(files.target));
        result.set("sampling",
                   Json::Object{{"temperature", double(sampling.filters.temperature)},
                                {"top_k", sampling.filters.top_k},
                                {"top_p", double(sampling.filters.top_p)},
                                {"repetition_penalty", double(sampling.penalties.repetition)}});
        Json::Array fitting;
        for (const Capabilities& device : list_devices())
            if (fits(plan, device)) fitting.push_back(device.name);
        result.set("fits", std::move(fitting));
        result.set("serve", Json::Object{{"contexts", serve.conversations},
                                         {"context", serve.context},
                                         {"cache_tokens", serve.cache_tokens},
                                         {"memory_bytes", uint64_t(serve.memory.total())}});
        result.set("memory_bytes", std::move(bytes));
        result.set("matrix_bytes", Json::Object{{"target", types_json(plan.target_types)},
                                                {drafter.key, types_json(plan.head_types)}});
        print(result.dump() + "\n");
        return 0;
    }
    print(model_table(files, *backend, tokenizer, memory) + serve_line(serve) +
          fitting_line(plan, largest, backend->capabilities().name));
    return 0;
}

}  // namespace aerie
