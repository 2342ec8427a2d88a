// `aerie models`: the models that are on this machine, wherever a program has put them; `rm`
// deletes one from Hugging Face's cache.
#include <unistd.h>

#include <iostream>

#include "commands.h"
#include "core/error.h"
#include "core/platform.h"
#include "core/utf8.h"
#include "format.h"
#include "io/cached_model.h"
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

// The published head for a model by its name, as -m understands it; empty if none is known.
std::string known_head(const std::string& name, std::span<const KnownHead> table) {
    const auto known = known_head_for(name, table);
    return known ? "hf:" + known->head.id() : "";
}

// Whether the user wants the files deleted, if that can be asked.
bool may_delete(const CachedModel& model, const std::string& name) {
    if (!::isatty(STDIN_FILENO))
        throw UsageError("models rm deletes files: add --yes where it cannot ask");
    tell("Delete " + name + ", " + megabytes(model.size_bytes) + " in " +
         model.repository.string() + "? [y/N] ");
    std::string answer;
    return std::getline(std::cin, answer) && (answer == "y" || answer == "Y" || answer == "yes");
}

int remove_model(const ModelsOptions& options) {
    if (*options.action != "rm")
        throw UsageError("aerie models takes rm NAME, not " + in_quotes(*options.action));
    if (!options.name)
        throw UsageError(
            "models rm needs a model: ORG/NAME, ORG/NAME:QUANT or the address of a file");
    const CachedModel model = find_cached_model(parse_repository_name(*options.name));
    if (!options.yes && !may_delete(model, *options.name)) {
        print_note("(nothing was deleted)");
        return 1;
    }
    delete_cached_model(model);
    print(*options.name + ": deleted, " + megabytes(model.size_bytes) + " are free\n");
    return 0;
}

}  // namespace

int run_models(const ModelsOptions& options) {
    if (options.action) return remove_model(options);
    const std::vector<ModelAtHand> models = models_at_hand(model_folders());
    const std::vector<KnownHead> table_of_known = read_known_heads(model_folders());
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
