// Opens files in the order in which errors are cheapest: options, configurations, tensors.
#include "engine/model_files.h"

#include <algorithm>
#include <cstdio>

#include "core/error.h"
#include "core/largest_with.h"
#include "core/utf8.h"
#include "draft/heads/kinds.h"
#include "draft/heads/random_head.h"
#include "model/make/random_weights.h"
#include "model/make/shapes.h"
#include "model/padded_heads.h"
#include "model/tensors.h"
#include "text/same_tokens.h"

namespace aerie {

namespace {

int choose_context(int asked, const ModelConfig& config) {
    if (asked == 0 || asked == kFittingContext) return std::min(kDefaultContext, config.context);
    if (asked < 2 || asked > config.context)
        throw UsageError("a context of " + std::to_string(asked) +
                         " does not fit this model; it takes 2 to " +
                         std::to_string(config.context));
    return asked;
}

bool is_quantised_model(const ModelConfig& config, const Checkpoint& tensors) {
    const WeightTypes types = matrix_bytes(tensors, target_tensors(config), std::nullopt);
    return std::any_of(types.begin(), types.end(),
                       [](const auto& of_type) { return is_quantised(of_type.first); });
}

// Beside a target of four bits per weight, a head of eight bits would take a large part of a cycle.
bool takes_four_bits(const WeightTypes& target) {
    constexpr int kWeights = 256;
    const auto most = std::max_element(target.begin(), target.end(),
                                       [](auto& a, auto& b) { return a.second < b.second; });
    return most != target.end() && 8 * size_bytes(most->first, kWeights) < 5 * kWeights;
}

std::optional<DType> draft_type(const ModelFiles& files, const LoadOptions& options) {
    if (options.draft_weights) return options.draft_weights;
    const ModelConfig& head = *files.head_config;
    const DType type = takes_four_bits(files.target_types(options)) ? DType::Q4_0 : DType::Q8_0;
    const int unit = unit_elements(type);
    const bool has_whole_units = head.hidden % unit == 0 && head.intermediate % unit == 0 &&
                                 head.file_attention_columns() % unit == 0 &&
                                 head.experts.intermediate % unit == 0;
    return has_whole_units ? std::optional(type) : std::nullopt;
}

// Measured: resident bytes of the program and its libraries without a model, bytes of a tokenizer
// per token (128,256 with 280,147 merges: 32 MB; 151,665 with 151,387: 24 MB; 32,000 scored ones: 9
// MB), and bytes of a GGUF file's metadata per byte of its texts.
constexpr size_t kProgramBytes = 6 << 20;
constexpr size_t kTokenBytes = 200;
constexpr size_t kTextFactor = 2;

size_t program_bytes(const ModelSource& source, const ModelConfig& config) {
    if (!source.tokenizer) return kProgramBytes;
    return kProgramBytes + size_t(config.vocab) * kTokenBytes +
           source.tokenizer->text_bytes * kTextFactor;
}

bool needs_head(const DraftOptions& draft) {
    return draft_method(draft.method).needs != DraftNeeds::nothing;
}

Tokenizer tokenizer_of(const ModelSource& source) {
    // Loading from the path fails with a message that says what is missing.
    return source.tokenizer ? Tokenizer::load(*source.tokenizer) : Tokenizer::load(source.path);
}

// The target's KV cache, with the drafter that the options name.
KvShape kv_of(const ModelFiles& files, const LoadOptions& options) {
    const BatchLimits limits = files.limits(options);
    const DraftPlan plan = files.draft_plan(options.draft, options, limits);
    return kv_shape(files.config, limits, draft_method(options.draft.method).reach(plan));
}

// The models exchange ids, so these must mean the same. Models of random weights may have no
// tokenizer.
void check_same_tokens(const ModelFiles& files) {
    const ModelSource& drafts = *files.head;
    const int vocab = files.config.vocab, drafted = files.head_config->vocab;
    if (!drafts.tokenizer && !files.target.tokenizer && vocab == drafted) return;
    const auto difference = first_difference(tokenizer_of(files.target), tokenizer_of(drafts),
                                             std::min(vocab, drafted));
    if (difference)
        throw Error(drafts.path.string() + ": this model cannot draft for " +
                    files.target.path.string() + ": token " + std::to_string(difference->id) +
                    " is " + in_quotes(difference->second) + ", the target's is " +
                    in_quotes(difference->first));
}

constexpr uint64_t kRandomSeed = 1;

DType random_type(std::optional<DType> asked) {
    return asked && is_float(*asked) ? *asked : DType::F16;
}

ModelSource random_source(const std::string& name, Json config, Checkpoint tensors) {
    ModelSource source;
    source.path = name;
    source.config = {std::move(config), name};
    source.tensors = std::move(tensors);
    return source;
}

// The kind that drafts with the method by default, or else the first.
const DraftHead& random_kind(const DraftOptions& draft) {
    const DraftHead* head = head_of_method(draft.method);
    return head && head->random.shape ? *head : draft_heads().front();
}

// Throws Error if the files of a draft head were given as the target.
void refuse_head(const ModelSource& source) {
    const DraftHead& kind = head_kind(source);
    if (kind.needs != DraftNeeds::head) return;
    const bool is_named =
        kind.has_config && kind.has_config(Fields(source.config.json, source.config.file));
    // The files of a whole model may contain heads, too.
    const bool is_whole = source.tensors.find("model.embed_tokens.weight") != nullptr;
    const bool has_head = kind.has_tensors || source.tensors.find("fc.weight");
    if (is_named || (has_head && !is_whole))
        throw Error(source.path.string() + ": " + kind.name +
                    ", not a model: give it with --head, and its model with -m");
}

}  // namespace

std::function<void(const std::string&)> LoadOptions::on_device_progress() const {
    if (!on_progress) return {};
    return [show = on_progress](const std::string& line) {
        show({LoadProgress::Stage::device, line});
    };
}

ModelFiles ModelFiles::open(const LoadOptions& options) {
    check_draft_options(options.draft);
    ModelFiles files;
    files.target = open_model(options.model);
    refuse_head(files.target);
    files.config = target_config(files.target);
    files.set_context(choose_context(options.context, files.config), options);
    if (!needs_head(options.draft)) return files;
    const bool is_optional = draft_method(options.draft.method).needs == DraftNeeds::what_there_is;
    if (options.head.empty() && is_optional) return files;
    files.head = open_head(options.head);
    files.head_config = aerie::head_config(*files.head);
    apply_options(options.head_options, files.config, *files.head_config);
    files.draft_ids = choose_draft_ids(options.head_options, files);
    files.draft_weights = draft_type(files, options);
    const BatchLimits limits = files.limits(options);
    draft_method(options.draft.method).check(files.draft_plan(options.draft, options, limits));
    if (files.head_config->kind->needs == DraftNeeds::language_model) {
        check_same_tokens(files);
        if (!options.draft_weights && is_quantised_model(*files.head_config, files.head->tensors))
            files.draft_weights.reset();
    }
    for (const std::filesystem::path& other : options.more_heads) {
        LoadOptions alone = options;
        alone.head = other;
        alone.more_heads.clear();
        alone.head_options = {};
        files.others.push_back(open(alone));
    }
    return files;
}

ModelFiles ModelFiles::random(const std::string& name, const ModelConfig& config,
                              const LoadOptions& options) {
    ModelFiles files;
    files.config = config;
    files.set_context(choose_context(options.context, config), options);
    const std::string target = name + " (random)";
    files.target = random_source(target, config_json(config),
                                 random_checkpoint(target, target_tensors(config),
                                                   random_type(options.weights), kRandomSeed));
    if (!needs_head(options.draft)) return files;
    const DraftHead& kind = random_kind(options.draft);
    HeadConfig& head = files.head_config.emplace(random_head_config(kind, config));
    apply_options(options.head_options, config, head);
    files.draft_ids = choose_draft_ids(options.head_options, files);
    files.draft_weights = draft_type(files, options);
    const std::string head_name = name + kind.ending + " (random)";
    files.head =
        random_source(head_name, kind.random.config_json(head),
                      random_head(head_name, head, random_type(files.draft_weights), kRandomSeed));
    return files;
}

DraftPlan ModelFiles::draft_plan(const DraftOptions& draft, const LoadOptions& options,
                                 const BatchLimits& limits) const {
    const NamedTensor* lm_head = target.tensors.find(config.lm_head_name());
    const DType stored = lm_head ? lm_head->dtype : DType::F32;
    std::vector<DraftPlan> plans;
    for (const ModelFiles& other : others)
        plans.push_back(other.draft_plan(draft, options, limits));
    return {.options = draft,
            .target = config,
            .source = head ? &*head : nullptr,
            .head = head_config,
            .head_ids = draft_ids,
            .weights = draft_weights,
            .lm_head_type = options.weights.value_or(stored),
            .kv = limits.kv,
            .context = limits.context,
            .pass_rows = std::max(limits.prefill_rows, kMaxNodes),
            .sequences = limits.sequences(),
            .together = limits.sequences_in_pass,
            .cache_tokens = limits.cache_tokens,
            .others = std::move(plans)};
}

void ModelFiles::replace_unstorable(const Backend& backend) {
    const auto can_store = [&](DType type) { return backend.stores(type); };
    target.tensors.replace_unstorable(can_store);
    pad_heads(target.tensors, config);
    if (head) {
        head->tensors.replace_unstorable(can_store);
        pad_heads(head->tensors, *head_config);
    }
    for (ModelFiles& other : others) other.replace_unstorable(backend);
}

WeightTypes ModelFiles::target_types(const LoadOptions& options) const {
    return matrix_bytes(target.tensors, target_tensors(config), options.weights);
}

WeightTypes ModelFiles::draft_types(const LoadOptions& options) const {
    const DraftMethod& method = draft_method(options.draft.method);
    if (!method.bytes) return {};
    return method.bytes(draft_plan(options.draft, options, limits(options))).types;
}

MemoryPlan ModelFiles::plan(const LoadOptions& options, const Backend& backend) const {
    const BatchLimits limits = this->limits(options);
    const DraftMethod& method = draft_method(options.draft.method);
    const DraftReach reach = method.reach(draft_plan(options.draft, options, limits));
    const std::vector<TensorShape> tensors = target_tensors(config);
    MemoryPlan plan;
    plan.target_types = target_types(options);
    plan.target_weights = sum(plan.target_types) + vector_bytes(target.tensors, tensors);
    plan.kv_cache = kv_shape(config, limits, reach).size_bytes();
    plan.scratch = batch_bytes(config, limits, reach) +
                   target_scratch_bytes(config, target_limits(limits)) +
                   backend.scratch_bytes(this->limits(options, backend.capabilities()));
    if (method.bytes) {
        const DraftBytes draft = method.bytes(draft_plan(options.draft, options, limits));
        plan.head_types = draft.types;
        plan.head_weights = draft.weights;
        plan.scratch += draft.scratch;
    }
    plan.program = program_bytes(target, config);
    if (method.host_bytes)
        plan.program += method.host_bytes(draft_plan(options.draft, options, limits));
    return plan;
}

size_t MemoryPlan::total() const {
    size_t sum = 0;
    for (const size_t part : {target_weights, head_weights, kv_cache, scratch, program})
        if (__builtin_add_overflow(sum, part, &sum)) return SIZE_MAX;
    return sum;
}

void ModelFiles::set_context(int positions, const LoadOptions& options) {
    context = positions;
    cache_tokens = options.cache_tokens == kFittingCache ? positions : options.cache_tokens;
    if (cache_tokens > 0) cache_tokens = std::max<int64_t>(cache_tokens, positions);
}

void ModelFiles::fit_context(const LoadOptions& options, const Backend& backend) {
    constexpr int kStep = 1024;  // a context is a round number
    constexpr double kShare = 0.5;
    if (options.context == kFittingContext) {
        int fitting = largest_context(options, backend, kShare);
        if (fitting < config.context) fitting -= fitting % kStep;
        set_context(std::max(context, fitting), options);
    }
    if (options.cache_tokens != kFittingCache) return;
    const auto fits = [&](int64_t tokens) {
        cache_tokens = tokens;
        return fits_in_memory(options, backend, kShare);
    };
    cache_tokens = largest_with(fits, context, int64_t(context) * options.sequences);
}

bool ModelFiles::fits_in_memory(const LoadOptions& options, const Backend& backend,
                                double share) const {
    try {
        kv_of(*this, options).check_rows();
        const double most = share * double(backend.capabilities().memory_bytes);
        return double(plan(options, backend).total()) <= most;
    } catch (const Error&) {
        return false;  // some limit of the device is exceeded, whatever its memory
    }
}

int ModelFiles::largest_context(const LoadOptions& options, const Backend& backend, double share) {
    const int asked = context;
    const auto fits = [&](int64_t positions) {
        set_context(int(positions), options);
        return this->fits_in_memory(options, backend, share);
    };
    const int largest = int(largest_with(fits, 0, config.context));
    set_context(asked, options);
    return largest;
}

Limits ModelFiles::limits(const LoadOptions& options, const Capabilities& device) const {
    const BatchLimits limits = this->limits(options);
    const DraftMethod& method = draft_method(options.draft.method);
    Limits all = backend_limits(config, limits);
    check_limits(all, device.most, target.path.string(), device.name);
    if (!method.limits || !head) return all;
    const Limits draft = method.limits(draft_plan(options.draft, options, limits));
    check_limits(draft, device.most, head->path.string(), device.name);
    return largest(all, draft);
}

// An allocation on a GPU fails in time. On the host it hardly ever does: missing memory is noticed
// when it is touched, by this program or another.
void ModelFiles::reserve(const LoadOptions& options, Backend& backend) const {
    const Capabilities& device = backend.capabilities();
    const Limits wanted = limits(options, device);
    const size_t planned = plan(options, backend).total();
    if (device.threads > 0 && planned > device.memory_bytes) {
        char line[120];
        std::snprintf(line, sizeof(line), "%.1f GiB for a context of %d (-c), there are %.1f GiB",
                      double(planned) / double(1 << 30), context,
                      double(device.memory_bytes) / double(1 << 30));
        throw Error(target.path.string() + ": this model needs " + line, Cause::device_memory);
    }
    kv_of(*this, options).check_rows();
    backend.reserve(wanted);
}

Tokenizer load_tokenizer(const ModelFiles& files) {
    Tokenizer tokenizer = tokenizer_of(files.target);
    if (tokenizer.size() > files.config.vocab)
        throw Error(files.target.path.string() + ": the tokenizer has " +
                    std::to_string(tokenizer.size()) + " pieces, the model " +
                    std::to_string(files.config.vocab));
    return tokenizer;
}

std::vector<int> eos_ids(const ModelFiles& files, const Tokenizer& tokenizer) {
    const GenerationConfig generation = generation_config(files.target);
    if (!generation.eos_ids.empty()) return generation.eos_ids;
    if (!files.config.eos_ids.empty()) return files.config.eos_ids;
    return tokenizer.eos() >= 0 ? std::vector<int>{tokenizer.eos()} : std::vector<int>{};
}

}  // namespace aerie
