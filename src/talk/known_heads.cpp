#include "talk/known_heads.h"

#include <system_error>

#include "core/ascii.h"
#include "core/error.h"
#include "core/platform.h"
#include "core/utf8.h"
#include "io/input_file.h"
#include "io/json.h"
#include "talk/locate.h"

namespace aerie {

namespace {

constexpr size_t kMaxBytes = size_t(1) << 20;

class Entry {
  public:
    Entry(const Json& json, std::string where) : json_(json), where_(std::move(where)) {
        if (!json.object()) throw Error(where_ + ": expected an object");
        for (const auto& [key, value] : *json.object())
            if (key != "target" && key != "head" && key != "also_named" && key != "sha256")
                throw Error(where_ + ": unknown member " + in_quotes(key));
    }

    RepositoryName repository(const char* key) const {
        const Json* value = json_.find(key);
        if (!value || !value->string())
            throw Error(where_ + ": '" + key + "' must be the name of a repository");
        try {
            return parse_repository_name(*value->string());
        } catch (const UsageError& error) {
            throw Error(where_ + ": '" + key + "': " + error.what());
        }
    }

    std::vector<std::string> names() const {
        std::vector<std::string> names;
        const Json* value = json_.find("also_named");
        if (!value) return names;
        if (!value->array()) throw Error(where_ + ": 'also_named' must be a list of names");
        for (const Json& name : *value->array()) {
            if (!name.string() || name.string()->empty())
                throw Error(where_ + ": 'also_named' must be a list of names");
            names.push_back(*name.string());
        }
        return names;
    }

    std::string sha256() const {
        const Json* value = json_.find("sha256");
        if (!value) return "";
        const std::string* text = value->string();
        if (!text || text->size() != 64 ||
            text->find_first_not_of("0123456789abcdef") != std::string::npos)
            throw Error(where_ + ": 'sha256' must be 64 hexadecimal digits, a to f in lower case");
        return *text;
    }

  private:
    const Json& json_;
    const std::string where_;
};

// The repository's name in lower case, without an ending that says GGUF.
std::string model_name(const RepositoryName& repository) {
    std::string name = lower_ascii(repository.name);
    for (const char* ending : {"-gguf", "_gguf", ".gguf"})
        if (name.ends_with(ending)) name.resize(name.size() - 5);
    return name;
}

}  // namespace

std::vector<KnownHead> read_known_heads(const std::filesystem::path& file) {
    const std::string source = file.string();
    const Json json = Json::parse(read_text(file, kMaxBytes), source);
    const Json* schema = json.find("schema");
    if (!schema || !schema->string() || *schema->string() != "aerie-heads-1")
        throw Error(source + ": 'schema' must be \"aerie-heads-1\"");
    const Json* list = json.find("heads");
    if (!list || !list->array()) throw Error(source + ": 'heads' must be a list");
    std::vector<KnownHead> heads;
    for (const Json& one : *list->array()) {
        const Entry entry(one, source + ": head " + std::to_string(heads.size() + 1));
        heads.push_back(
            {entry.repository("target"), entry.repository("head"), entry.names(), entry.sha256()});
    }
    return heads;
}

std::vector<KnownHead> read_known_heads(std::span<const std::filesystem::path> folders) {
    const std::filesystem::path file = find_beside_models("heads.json", folders);
    return file.empty() ? std::vector<KnownHead>{} : read_known_heads(file);
}

std::optional<KnownHead> known_head_for(const std::string& name, std::span<const KnownHead> heads) {
    RepositoryName target;
    try {
        target = parse_repository_name(name);
    } catch (const UsageError&) {
        return {};
    }
    const bool is_gguf = model_name(target).size() < target.name.size();
    for (const KnownHead& known : heads) {
        if (lower_ascii(target.id()) == lower_ascii(known.target.id())) return known;
        if (!is_gguf) continue;
        std::vector<std::string> names = known.also_named;
        names.push_back(known.target.name);
        for (const std::string& name : names)
            if (lower_ascii(name) == model_name(target)) return known;
    }
    return {};
}

bool has_known_weights(const KnownHead& known, const std::filesystem::path& folder) {
    bool has_them = known.sha256.empty();
    std::error_code ignored;
    platform::each_entry(folder, [&](const std::filesystem::path& entry) {
        const std::filesystem::path blob =
            std::filesystem::read_symlink(folder / entry, ignored).filename();
        has_them = has_them || blob == known.sha256;
    });
    return has_them;
}

}  // namespace aerie
