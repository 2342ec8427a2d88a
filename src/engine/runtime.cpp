// Loading, in the order in which errors are cheapest: options, configs, tensors, device, weights.
#include "engine/runtime.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <utility>

#include "backend/registry.h"
#include "core/error.h"
#include "draft/eagle_head.h"
#include "engine/measure.h"
#include "model/shapes.h"
#include "model/synthetic.h"

namespace aerie {

namespace {

SessionLimits session_limits(const RuntimeOptions& options, int context) {
    return {context, options.kv, options.prefill_rows};
}

int choose_context(int asked, const ModelConfig& config) {
    if (asked == 0) return std::min(kDefaultContext, config.context);
    if (asked < 2 || asked > config.context)
        throw UsageError("a context of " + std::to_string(asked) +
                         " does not fit this model; it takes 2 to " +
                         std::to_string(config.context));
    return asked;
}

bool is_matrix(const NamedTensor& tensor) {
    return tensor.shape.size() == 2 && is_float(tensor.dtype);
}

// Bytes that those of the tensors which are there take on the device, matrices stored as `as` or as
// they are. What a file has besides is not loaded.
WeightTypes matrix_bytes(const Checkpoint& checkpoint, const std::vector<TensorShape>& tensors,
                         std::optional<DType> as) {
    WeightTypes types;
    for (const TensorShape& wanted : tensors) {
        const NamedTensor* tensor = checkpoint.find(wanted.name);
        if (!tensor || !is_matrix(*tensor)) continue;
        const DType stored = as.value_or(tensor->dtype);
        types[stored] += weight_bytes(wanted.name, *tensor, stored);
    }
    return types;
}

// The others.
size_t vector_bytes(const Checkpoint& checkpoint, const std::vector<TensorShape>& tensors) {
    size_t total = 0;
    for (const TensorShape& wanted : tensors)
        if (const NamedTensor* tensor = checkpoint.find(wanted.name); tensor && !is_matrix(*tensor))
            total += size_bytes(DType::F32, elements_in(tensor->dtype, tensor->data.size_bytes));
    return total;
}

size_t sum(const WeightTypes& types) {
    size_t total = 0;
    for (const auto& [type, bytes] : types) total += bytes;
    return total;
}

// Matrices that are uploaded as one have one name here.
std::string stack_name(const std::string& name) {
    constexpr std::pair<const char*, const char*> kStacks[] = {{"q_proj", "qkv"},
                                                               {"k_proj", "qkv"},
                                                               {"v_proj", "qkv"},
                                                               {"gate_proj", "gate_up"},
                                                               {"up_proj", "gate_up"}};
    for (const auto& [part, stack] : kStacks)
        if (const size_t at = name.find(part); at != std::string::npos)
            return name.substr(0, at) + stack;
    return name;
}

// File data that is in memory at once while a model is loaded.
size_t loading_bytes(const Checkpoint& checkpoint, const std::vector<TensorShape>& tensors) {
    std::map<std::string, size_t> stacks;
    size_t most = 0;
    for (const TensorShape& wanted : tensors)
        if (const NamedTensor* tensor = checkpoint.find(wanted.name)) {
            size_t& stack = stacks[stack_name(wanted.name)];
            most = std::max(most, stack += tensor->data.size_bytes);
        }
    return most;
}

std::optional<DType> draft_type(const ModelConfig& head, const RuntimeOptions& options) {
    if (options.draft_weights) return options.draft_weights;
    const DType type = options.weights == DType::Q4_0 ? DType::Q4_0 : DType::Q8_0;
    const int unit = unit_elements(type);
    const bool fits = head.hidden % unit == 0 && head.intermediate % unit == 0 &&
                      head.attention_columns() % unit == 0;
    return fits ? std::optional(type) : std::nullopt;
}

// All of a model that its speed depends on.
std::string shape_key(const ModelConfig& config, const WeightTypes& types) {
    std::string key = config.architecture;
    for (int size : {config.layers, config.hidden, config.intermediate, config.attention.heads,
                     config.attention.kv_heads, config.attention.head_dim, config.vocab})
        key += " " + std::to_string(size);
    return key + " " + to_string(types);
}

// Measured: resident bytes of the program and its libraries before a model, and those of a
// tokenizer for each byte of its file (32,000 pieces in 0.54 MB take 8.1 MB).
constexpr size_t kProgramBytes = 6 << 20;
constexpr size_t kTokenizerFactor = 15;

size_t program_bytes(const std::filesystem::path& folder) {
    std::error_code ignored;
    const auto tokenizer = std::filesystem::file_size(folder / "tokenizer.model", ignored);
    return kProgramBytes + (ignored ? 0 : size_t(tokenizer) * kTokenizerFactor);
}

}  // namespace

ModelFiles ModelFiles::open(const RuntimeOptions& options) {
    ModelFiles files;
    files.config = read_model_config(options.model);
    files.context = choose_context(options.context, files.config);
    files.checkpoint = Checkpoint::open(options.model);
    if (options.draft.kind != DraftKind::none) {
        files.head_config = read_head_config(options.head);
        check_head_fits(*files.head_config, files.config, options.head.string());
        files.head_checkpoint = Checkpoint::open(options.head);
        files.draft_weights = draft_type(*files.head_config, options);
    }
    return files;
}

ModelFiles ModelFiles::random(const std::string& name, const ModelConfig& config,
                              const RuntimeOptions& options) {
    constexpr uint64_t kSeed = 1;
    const auto checkpoint = [&](const std::string& role, const std::vector<TensorShape>& tensors,
                                std::optional<DType> type) {
        const bool as_it_is = type && is_float(*type);
        return random_checkpoint(name + role, tensors, as_it_is ? *type : DType::F16, kSeed);
    };
    ModelFiles files;
    files.config = config;
    files.context = choose_context(options.context, config);
    files.checkpoint = checkpoint(" (random)", target_tensors(config), options.weights);
    if (options.draft.kind != DraftKind::none) {
        files.head_config = head_shape(config);
        files.draft_weights = draft_type(*files.head_config, options);
        files.head_checkpoint =
            checkpoint("-eagle (random)", head_tensors(config), files.draft_weights);
    }
    return files;
}

WeightTypes ModelFiles::target_types(const RuntimeOptions& options) const {
    return matrix_bytes(checkpoint, target_tensors(config), options.weights);
}

// With the target's LM head in the type that the head drafts with, where that is another.
WeightTypes ModelFiles::head_types(const RuntimeOptions& options) const {
    WeightTypes types = matrix_bytes(*head_checkpoint, head_tensors(*head_config), draft_weights);
    const DType drafted = lm_head_type(*head_checkpoint, draft_weights);
    const NamedTensor* own =
        checkpoint.find(config.tied_embeddings ? "model.embed_tokens.weight" : "lm_head.weight");
    if (own && options.weights.value_or(own->dtype) != drafted)
        types[drafted] += dense_bytes(drafted, config.vocab, config.hidden);
    return types;
}

MemoryPlan ModelFiles::plan(const RuntimeOptions& options, const Backend& backend) const {
    const SessionLimits limits = session_limits(options, context);
    const DraftReach reach = draft_reach(options.draft, config);
    MemoryPlan plan;
    plan.target_types = target_types(options);
    plan.target_weights = sum(plan.target_types) + vector_bytes(checkpoint, target_tensors(config));
    plan.kv_cache = kv_shape(config, limits, reach).size_bytes();
    plan.scratch = session_bytes(config, limits, reach) - plan.kv_cache +
                   target_scratch_bytes(config, target_limits(limits)) +
                   backend.scratch_bytes(this->limits(options, backend.capabilities()));
    if (head_config) {
        plan.head_types = head_types(options);
        plan.head_weights =
            sum(plan.head_types) + vector_bytes(*head_checkpoint, head_tensors(*head_config));
        plan.scratch += eagle_scratch_bytes(*head_config, options.draft, options.kv, context,
                                            std::max(options.prefill_rows, kMaxNodes));
    }
    plan.program = program_bytes(checkpoint.folder());
    size_t loading = loading_bytes(checkpoint, target_tensors(config));
    if (head_config)
        loading = std::max(loading, loading_bytes(*head_checkpoint, head_tensors(*head_config)));
    plan.loading = loading > plan.kv_cache ? loading - plan.kv_cache : 0;
    return plan;
}

Limits ModelFiles::limits(const RuntimeOptions& options, const Capabilities& device) const {
    Limits all = backend_limits(config, session_limits(options, context));
    check_limits(all, device.most, checkpoint.folder().string(), device.name);
    if (head_config) {
        const Limits head = eagle_limits(*head_config, options.draft, context,
                                         std::max(options.prefill_rows, kMaxNodes));
        check_limits(head, device.most, head_checkpoint->folder().string(), device.name);
        all = largest(all, head);
    }
    return all;
}

// A GPU's allocations fail in time. The host's hardly ever do: what is not there is missed when it
// is touched, by this program or another.
void ModelFiles::reserve(const RuntimeOptions& options, Backend& backend) const {
    const Capabilities& device = backend.capabilities();
    const Limits wanted = limits(options, device);
    const size_t planned = plan(options, backend).total();
    if (device.threads > 0 && planned > device.memory_bytes) {
        char line[120];
        std::snprintf(line, sizeof(line), "%.1f GiB for a context of %d (-c), there are %.1f GiB",
                      double(planned) / double(1 << 30), context,
                      double(device.memory_bytes) / double(1 << 30));
        throw Error(checkpoint.folder().string() + ": this model needs " + line);
    }
    backend.reserve(wanted);
}

Runtime::Runtime(const RuntimeOptions& options)
    : files_(ModelFiles::open(options)),
      generation_config_(read_generation_config(options.model)),
      tokenizer_(Tokenizer::load(options.model)),
      backend_(open_device(
          options.device, {options.threads, options.cache, options.profile, options.on_progress})) {
    const auto progress = [&](const std::string& stage) {
        if (options.on_progress) options.on_progress(stage);
    };
    check_tokenizer_fits(tokenizer_, files_.config, options.model);
    const SessionLimits limits = session_limits(options, files_.context);
    files_.reserve(options, *backend_);
    progress("loading " + options.model.string());
    target_ = make_target(*backend_, files_.config, files_.checkpoint, options.weights,
                          target_limits(limits));
    if (files_.head_config) {
        progress("loading " + options.head.string());
        drafter_ = make_eagle({*backend_, *target_, *files_.head_config, *files_.head_checkpoint,
                               files_.draft_weights, options.kv, files_.context,
                               std::max(options.prefill_rows, kMaxNodes)},
                              options.draft);
    } else {
        drafter_ = make_none();
    }
    session_ = std::make_unique<Session>(*backend_, *target_, *drafter_, limits);
    learn_costs(options);
}

// Where the drafter's trees depend on costs: those of the cache, else measured now.
void Runtime::learn_costs(const RuntimeOptions& options) {
    CostAware* drafter = drafter_->cost_aware();
    if (!drafter) return;
    const std::string key = backend_->capabilities().name + "; " +
                            backend_->capabilities().description + "; target " +
                            shape_key(files_.config, files_.target_types(options)) + "; head " +
                            shape_key(*files_.head_config, files_.head_types(options)) + "; kv " +
                            aerie::name(options.kv);
    if (!options.cache.empty()) cost_file_ = cost_file(options.cache, key);
    auto costs = options.cache.empty() ? std::nullopt : read_costs(options.cache, key);
    if (!costs) {
        if (options.on_progress) options.on_progress("measuring this device");
        costs = measure_costs(*session_, *drafter, kMeasureSeconds);
        if (!options.cache.empty()) write_costs(options.cache, key, *costs);
    }
    drafter->set_costs(*costs);
}

void Runtime::review_costs() const {
    constexpr double kFarOff = 2;
    const CostAware* drafter = drafter_->cost_aware();
    std::error_code ignored;
    if (drafter && !cost_file_.empty() && drafter->cost_correction() > kFarOff)
        std::filesystem::remove(cost_file_, ignored);
}

void check_tokenizer_fits(const Tokenizer& tokenizer, const ModelConfig& config,
                          const std::filesystem::path& folder) {
    if (tokenizer.size() > config.vocab)
        throw Error(folder.string() + ": the tokenizer has " + std::to_string(tokenizer.size()) +
                    " pieces, the model " + std::to_string(config.vocab));
}

std::vector<int> eos_ids(const GenerationConfig& generation, const ModelConfig& config,
                         const Tokenizer& tokenizer) {
    if (!generation.eos_ids.empty()) return generation.eos_ids;
    if (!config.eos_ids.empty()) return config.eos_ids;
    return tokenizer.eos() >= 0 ? std::vector<int>{tokenizer.eos()} : std::vector<int>{};
}

}  // namespace aerie
