// `aerie info`: a model's shape and the memory that it will need, without loading it.
#include "backend/registry.h"
#include "commands.h"
#include "format.h"
#include "io/json.h"
#include "model/shapes.h"
#include "terminal.h"

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

std::vector<Line> memory_lines(const MemoryPlan& plan) {
    return {
        {"target_weights", with_types("target weights", plan.target_types), plan.target_weights},
        {"head_weights", with_types("head weights", plan.head_types), plan.head_weights},
        {"kv_cache", "KV cache", plan.kv_cache},
        {"scratch", "activations, head cache, scratch", plan.scratch},
        {"program", "program, tokenizer", plan.program},
        {"loading", "files while loading", plan.loading},
        {"total", "total", plan.total()}};
}

Json types_json(const WeightTypes& types) {
    Json::Object json;
    for (const auto& [type, bytes] : types) json.emplace_back(aerie::name(type), uint64_t(bytes));
    return json;
}

std::string types_of(const Checkpoint& checkpoint) {
    std::string types;
    for (const auto& [name, tensor] : checkpoint.tensors())
        if (const std::string type = aerie::name(tensor.dtype);
            types.find(type) == std::string::npos)
            types += (types.empty() ? "" : ", ") + type;
    return types;
}

size_t parameters(const Checkpoint& checkpoint) {
    size_t count = 0;
    for (const auto& [name, tensor] : checkpoint.tensors())
        count += elements_in(tensor.dtype, tensor.data.size_bytes);
    return count;
}

Json model_json(const ModelConfig& config, const ModelSource& source) {
    const Checkpoint& checkpoint = source.tensors;
    Json json(Json::Object{{"folder", source.path.string()},
                           {"architecture", config.architecture},
                           {"parameters", uint64_t(parameters(checkpoint))},
                           {"types", types_of(checkpoint)}});
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

std::string model_lines(const char* role, const ModelConfig& config, const ModelSource& source) {
    const Checkpoint& checkpoint = source.tensors;
    return format("%-8s ", role) + source.path.string() + "\n" +
           format("         %s, %.1f M parameters (%s), %d layer%s\n", config.architecture.c_str(),
                  double(parameters(checkpoint)) / 1e6, types_of(checkpoint).c_str(), config.layers,
                  config.layers == 1 ? "" : "s") +
           format("         hidden %d, %s, %d heads of %d (%d for KV), vocabulary %d\n",
                  config.hidden, ffn_of(config).c_str(), config.attention.heads,
                  config.attention.head_dim, config.attention.kv_heads, config.vocab);
}

std::string model_table(const ModelFiles& files, const Backend& backend,
                        const std::vector<Line>& memory) {
    std::string table = model_lines("target", files.config, files.target);
    if (files.head_config) table += model_lines("head", *files.head_config, *files.head);
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
    const ModelFiles files = ModelFiles::open(runtime);
    const auto backend = open_device(runtime.device, {runtime.threads});
    const MemoryPlan plan = files.plan(runtime, *backend);
    const std::vector<Line> memory = memory_lines(plan);
    if (options.json) {
        Json::Object bytes;
        for (const Line& line : memory) bytes.emplace_back(line.key, uint64_t(line.bytes));
        Json result(Json::Object{{"schema", "aerie-info-1"},
                                 {"device", backend->capabilities().name},
                                 {"context", files.context},
                                 {"target", model_json(files.config, files.target)}});
        if (files.head_config) result.set("head", model_json(*files.head_config, *files.head));
        result.set("memory_bytes", std::move(bytes));
        result.set("matrix_bytes", Json::Object{{"target", types_json(plan.target_types)},
                                                {"head", types_json(plan.head_types)}});
        print(result.dump() + "\n");
        return 0;
    }
    print(model_table(files, *backend, memory));
    return 0;
}

}  // namespace aerie
