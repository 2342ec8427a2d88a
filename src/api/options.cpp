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
    draft.chain_length = number(asked.chain_length, kMaxDepth, draft.chain_length, "chain_length");
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
    load.draft = draft_options(asked);
    load.device = asked.device ? asked.device : "";
    load.cache = cache_of(asked.cache);
    WantedModel wanted;
    wanted.model = given_text(asked.model, 0, "model");
    wanted.head = name_of(asked.head);
    wanted.draft = name_of(asked.draft);
    if (asked.models) wanted.folders = {platform::path_of(asked.models)};
    locate(wanted, load);
    if (asked.progress)
        load.on_progress = [call = asked.progress,
                            user = asked.progress_user](const std::string& stage) {
            if (call(user, stage.c_str()) != 0) throw Cancelled();
        };
    return load;
}

}  // namespace aerie::api
