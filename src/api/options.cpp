// Checks and converts the options for opening a model.
#include "api/options.h"

#include "api/border.h"
#include "api/structs.h"
#include "core/pack_blocks.h"
#include "core/platform.h"
#include "core/utf8.h"
#include "draft/trees/tree.h"
#include "talk/locate.h"

namespace aerie::api {

namespace {

constexpr DType kKvTypes[] = {DType::F32, DType::F16};

std::optional<DType> type_named(const char* name, std::span<const DType> types, const char* what) {
    if (!name) return {};
    std::string names;
    for (const DType type : types) {
        if (std::string_view(name) == aerie::name(type)) return type;
        names += (names.empty() ? "" : ", ") + std::string(aerie::name(type));
    }
    throw UsageError(std::string(what) + ": expected one of " + names + ", not " + in_quotes(name));
}

std::optional<DType> weight_type(const char* name, const char* what) {
    return type_named(name, kWeightTypes, what);
}

// Returns the default for 0.
int number(int32_t given, int most, int default_value, const char* what) {
    if (given < 0 || given > most)
        throw UsageError(std::string(what) + ": expected a number from 0 to " +
                         std::to_string(most) + ", not " + std::to_string(given));
    return given == 0 ? default_value : given;
}

DraftOptions draft_options(const aerie_model_options& asked) {
    DraftOptions draft;
    if (const int length = number(asked.chain_length, kMaxDepth, 0, "chain_length"); length > 0)
        draft.chain_length = length;
    if (asked.tree_nodes != 0 || asked.tree_levels != 0 || asked.tree_top_k != 0) {
        draft.tree = TreeShape{asked.tree_nodes, asked.tree_levels, asked.tree_top_k};
        check_tree_shape(*draft.tree);
    }
    return draft;
}

std::filesystem::path cache_of(const char* folder) {
    if (!folder) return default_cache();
    return platform::path_of(folder);
}

aerie_stage stage_of(LoadProgress::Stage stage) {
    switch (stage) {
        case LoadProgress::Stage::device:
            return AERIE_STAGE_DEVICE;
        case LoadProgress::Stage::model:
            return AERIE_STAGE_MODEL;
        case LoadProgress::Stage::head:
            return AERIE_STAGE_HEAD;
        case LoadProgress::Stage::costs:
            break;
    }
    return AERIE_STAGE_COSTS;
}

std::function<void(const LoadProgress&)> progress_of(const aerie_model_options& asked) {
    return [say = asked.progress, user = asked.progress_user, count = asked.load_progress,
            count_user = asked.load_progress_user](const LoadProgress& now) {
        if (say && say(user, now.line.c_str()) != 0) throw Cancelled();
        if (count && count(count_user, stage_of(now.stage), now.done, now.total) != 0)
            throw Cancelled();
    };
}

std::optional<std::string> name_of(const char* given) {
    return given ? std::optional<std::string>(given) : std::nullopt;
}

}  // namespace

LoadOptions load_options(const aerie_model_options* options) {
    constexpr int kMaxThreads = 1024, kMaxSessions = 4096;
    const aerie_model_options asked = read_struct(options, "aerie_model_options");
    LoadOptions load;
    load.weights = weight_type(asked.weights, "weights");
    load.draft_weights = weight_type(asked.draft_weights, "draft_weights");
    load.kv = type_named(asked.kv, kKvTypes, "kv").value_or(load.kv);
    load.threads = number(asked.threads, kMaxThreads, 0, "threads");
    const int context = number(asked.context, std::numeric_limits<int>::max(), 0, "context");
    load.context = context > 0 ? context : kFittingContext;
    load.sequences = number(asked.sessions, kMaxSessions, 1, "sessions");
    load.sequences_in_pass = std::min(load.sequences, kMaxTogether);
    load.draft = draft_options(asked);
    load.device = asked.device ? asked.device : "";
    load.cache = cache_of(asked.cache);
    WantedModel wanted;
    wanted.model = given_text(asked.model, 0, "model");
    wanted.head = name_of(asked.head);
    wanted.draft = name_of(asked.draft);
    if (asked.models) wanted.folders = {platform::path_of(asked.models)};
    with_cause(Cause::damaged, [&] { locate(wanted, load); });
    if (asked.progress || asked.load_progress) load.on_progress = progress_of(asked);
    return load;
}

}  // namespace aerie::api
