// `aerie models`: the models that are on this machine, wherever a program has put them.
#include "commands.h"
#include "core/error.h"
#include "core/platform.h"
#include "format.h"
#include "io/json.h"
#include "talk/known_heads.h"
#include "talk/locate.h"
#include "terminal.h"

namespace aerie {

namespace {

std::string joined(const std::vector<std::string>& names) {
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
    return text.empty() ? "-" : text;
}

std::vector<KnownHead> table_of_heads() {
    const std::filesystem::path file = find_beside_models("heads.json", model_folders());
    return file.empty() ? std::vector<KnownHead>{} : read_known_heads(file);
}

// The published head for a model by its name, as -m understands it; empty if none is known.
std::string known_head(const std::string& name, std::span<const KnownHead> table) {
    try {
        const auto known = known_head_for(parse_repository_name(name), table);
        return known ? "hf:" + known->head.id() : "";
    } catch (const UsageError&) {
        return "";  // no name of a repository
    }
}

}  // namespace

int run_models(const ListingOptions& options) {
    const std::vector<ModelAtHand> models = models_at_hand(model_folders());
    const std::vector<KnownHead> table_of_known = table_of_heads();
    const uint64_t memory = platform::memory_bytes();
    if (options.json) {
        Json::Array list;
        for (const auto& [model, heads] : models) {
            const std::string known = known_head(model.name, table_of_known);
            list.push_back(Json::Object{{"name", model.name},
                                        {"path", model.path.string()},
                                        {"program", model.program},
                                        {"weight_bytes", model.size_bytes},
                                        {"fits", model.size_bytes < memory},
                                        {"heads", Json::Array(heads.begin(), heads.end())},
                                        {"known_head", known.empty() ? Json() : Json(known)}});
        }
        const Json result(Json::Object{{"schema", "aerie-models-1"}, {"models", std::move(list)}});
        print(result.dump() + "\n");
        return 0;
    }
    size_t width = 4;
    for (const ModelAtHand& one : models) width = std::max(width, one.model.name.size());
    const auto line = [&](const std::string& name, const std::string& size,
                          const std::string& program, const std::string& heads) {
        return name + std::string(width - name.size(), ' ') +
               format("  %9s  %-12s  ", size.c_str(), program.c_str()) + heads + "\n";
    };
    std::string table = line("name", "weights", "kept by", "heads");
    for (const auto& [model, beside] : models) {
        std::vector<std::string> heads = beside;
        const std::string known = known_head(model.name, table_of_known);
        if (!known.empty()) heads.push_back(known);
        table += line(model.name, megabytes(model.size_bytes), model.program,
                      model.size_bytes < memory
                          ? joined(heads)
                          : "too large: this machine has " + megabytes(memory) + " of memory");
    }
    print(table);
    return 0;
}

}  // namespace aerie
