// `aerie models`: the models that are on this machine, wherever a program has put them.
#include "commands.h"
#include "core/platform.h"
#include "format.h"
#include "io/json.h"
#include "talk/locate.h"
#include "terminal.h"

namespace aerie {

namespace {

std::string joined(const std::vector<std::string>& names) {
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
    return text.empty() ? "-" : text;
}

}  // namespace

int run_models(const ListingOptions& options) {
    const std::vector<ModelAtHand> models = models_at_hand(model_folders());
    const uint64_t memory = platform::memory_bytes();
    if (options.json) {
        Json::Array list;
        for (const auto& [model, heads] : models)
            list.push_back(Json::Object{{"name", model.name},
                                        {"path", model.path.string()},
                                        {"program", model.program},
                                        {"weight_bytes", model.size_bytes},
                                        {"fits", model.size_bytes < memory},
                                        {"heads", Json::Array(heads.begin(), heads.end())}});
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
    for (const auto& [model, heads] : models)
        table += line(model.name, megabytes(model.size_bytes), model.program,
                      model.size_bytes < memory
                          ? joined(heads)
                          : "too large: this machine has " + megabytes(memory) + " of memory");
    print(table);
    return 0;
}

}  // namespace aerie
