#include "io/repository.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "core/ascii.h"
#include "core/error.h"
#include "core/utf8.h"
#include "io/model_folder.h"

namespace aerie {

namespace {

constexpr size_t kMostFiles = 100'000;
constexpr const char* kUsualQuant = "Q4_K_M";

bool is_name_byte(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
}

bool is_name(const std::string& text) {
    return !text.empty() && text.size() <= 96 && text != "." && text != ".." &&
           text.find("--") == text.npos && std::all_of(text.begin(), text.end(), is_name_byte);
}

bool is_hash(const std::string& text) {
    return text.size() >= 40 && text.size() <= 64 &&
           std::all_of(text.begin(), text.end(),
                       [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

// Whether each part of the path is the plain name of a file or folder.
bool is_plain_path(const std::string& path) {
    if (path.size() > 1024) return false;
    for (size_t first = 0; first <= path.size();) {
        const size_t last = std::min(path.find('/', first), path.size());
        if (!is_plain_name(path.substr(first, last - first))) return false;
        first = last + 1;
    }
    return true;
}

std::string text_of(const Json& json, const char* key) {
    const Json* value = json.find(key);
    return value && value->string() ? *value->string() : std::string();
}

std::string file_name(const std::string& path) {
    return path.substr(path.rfind('/') + 1);
}

// A GGUF file, or one part of it.
struct GgufName {
    std::string stem;  // without the number of the part and the ending
    int part = 1, parts = 1;
};

std::optional<GgufName> gguf_name(const std::string& path) {
    constexpr std::string_view kEnding = ".gguf", kOf = "-of-";
    constexpr size_t kDigits = 5;
    if (!lower_ascii(path).ends_with(kEnding)) return {};
    GgufName name{path.substr(0, path.size() - kEnding.size())};
    const size_t tail = 1 + kDigits + kOf.size() + kDigits;
    if (name.stem.size() <= tail) return name;
    const std::string end = name.stem.substr(name.stem.size() - tail);
    const std::string first = end.substr(1, kDigits), last = end.substr(tail - kDigits);
    const auto is_number = [](const std::string& text) {
        return text.find_first_not_of("0123456789") == text.npos;
    };
    if (end[0] != '-' || end.substr(1 + kDigits, kOf.size()) != kOf || !is_number(first) ||
        !is_number(last))
        return name;
    return GgufName{name.stem.substr(0, name.stem.size() - tail), std::stoi(first),
                    std::stoi(last)};
}

// Whether the name contains the word: "model-Q4_K_M" has "q4_k_m", and not "q4_k".
bool has_word(const std::string& name, const std::string& word) {
    const auto is_part = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
    };
    const std::string text = lower_ascii(name), wanted = lower_ascii(word);
    for (size_t at = 0; (at = text.find(wanted, at)) != text.npos; ++at) {
        const size_t end = at + wanted.size();
        if ((at == 0 || !is_part(text[at - 1])) && (end == text.size() || !is_part(text[end])))
            return true;
    }
    return false;
}

// Files that stand beside a model, and are none.
bool is_beside_a_model(const std::string& stem) {
    const std::string name = lower_ascii(file_name(stem));
    return name.starts_with("mmproj") || name.find("imatrix") != name.npos;
}

using Parts = std::vector<RepositoryFile>;

// The GGUF models among the files, by their stems, with the parts of each in order.
std::map<std::string, Parts> gguf_models(const std::vector<RepositoryFile>& files) {
    std::map<std::string, std::map<int, RepositoryFile>> found;
    std::map<std::string, int> parts;
    for (const RepositoryFile& file : files)
        if (const std::optional<GgufName> name = gguf_name(file.path);
            name && !is_beside_a_model(name->stem)) {
            found[name->stem][name->part] = file;
            parts[name->stem] = name->parts;
        }
    std::map<std::string, Parts> models;
    for (const auto& [stem, all] : found) {
        if (int(all.size()) != parts[stem]) continue;  // a part is missing
        for (const auto& [part, file] : all) models[stem].push_back(file);
    }
    return models;
}

// "Q4_K_M" of "model-Q4_K_M" and of "model.Q4_K_M".
std::string quant_of(const std::string& stem) {
    const std::string name = file_name(stem);
    return name.substr(name.find_last_of("-.") + 1);
}

// The names of the models, for an error.
std::string choices_of(const std::map<std::string, Parts>& models) {
    std::string text;
    size_t shown = 0;
    for (const auto& [stem, parts] : models) {
        if (++shown > 20) return text + ", ...";
        text += (text.empty() ? "" : ", ") + stem;
    }
    return text;
}

Parts folder_of(const std::vector<RepositoryFile>& files) {
    constexpr const char* kSmall[] = {"config.json",
                                      "generation_config.json",
                                      "tokenizer.json",
                                      "tokenizer.model",
                                      "tokenizer_config.json",
                                      "chat_template.jinja",
                                      "model.safetensors.index.json"};
    const auto is_in_root = [](const RepositoryFile& file) {
        return file_name(file.path) == file.path;
    };
    const auto is_safetensors = [&](const RepositoryFile& file) {
        return is_in_root(file) && file.path.ends_with(".safetensors") &&
               !file.path.starts_with("consolidated");
    };
    const bool has_safetensors = std::any_of(files.begin(), files.end(), is_safetensors);
    Parts folder;
    for (const RepositoryFile& file : files) {
        const bool is_small =
            std::find(std::begin(kSmall), std::end(kSmall), file.path) != std::end(kSmall);
        const bool is_torch =
            !has_safetensors && is_in_root(file) &&
            (file.path.ends_with(".bin") || file.path.ends_with(".bin.index.json") ||
             file.path.ends_with("_lm_head.pt"));
        if (is_small || is_safetensors(file) || is_torch) folder.push_back(file);
    }
    const auto is_config = [](const RepositoryFile& file) { return file.path == "config.json"; };
    const bool is_model = std::any_of(folder.begin(), folder.end(), is_config) &&
                          std::any_of(folder.begin(), folder.end(), [](const RepositoryFile& file) {
                              return !file.path.ends_with(".json") &&
                                     !file.path.starts_with("tokenizer") &&
                                     !file.path.ends_with(".jinja");
                          });
    return is_model ? folder : Parts();
}

}  // namespace

std::string without_hub_prefix(const std::string& text) {
    const auto cut = [&](const char* prefix) {
        const size_t size = std::string_view(prefix).size();
        return lower_ascii(text.substr(0, size)) == prefix ? text.substr(size) : std::string();
    };
    // These stand before another prefix alone; "hf:" may: -hf hf.co/ORG/NAME.
    for (const char* prefix : {"https://", "http://", "www."})
        if (const std::string rest = cut(prefix); !rest.empty()) return without_hub_prefix(rest);
    for (const char* prefix : {"hf:", "huggingface.co/", "hf.co/"})
        if (const std::string rest = cut(prefix); !rest.empty()) {
            const std::string further = without_hub_prefix(rest);
            return further.empty() ? rest : further;
        }
    return {};
}

namespace {

// "a b" for "a%20b".
std::string unescaped(const std::string& text) {
    std::string plain;
    for (size_t i = 0; i < text.size(); ++i) {
        int byte = 0;
        const char* end = text.data() + std::min(text.size(), i + 3);
        if (text[i] == '%' &&
            std::from_chars(text.data() + i + 1, end, byte, 16).ptr == text.data() + i + 3) {
            plain += char(byte);
            i += 2;
        } else {
            plain += text[i];
        }
    }
    return plain;
}

// Cuts an address behind the repository's name. Returns the GGUF file that it names; empty if it
// names the whole repository. Throws UsageError for anything else, which must not be taken for
// either.
std::string cut_page(std::string& address) {
    // The hub's page of a repository, with one file shown.
    constexpr std::string_view kShown = "?show_file_info=";
    std::string shown;
    if (const size_t query = address.find(kShown); query != address.npos) {
        const size_t first = query + kShown.size();
        shown = unescaped(address.substr(first, address.find_first_of("&#", first) - first));
    }
    address = address.substr(0, address.find_first_of("?#"));
    size_t at = address.npos, end = 0;
    for (const std::string page : {"/tree/", "/blob/", "/resolve/"})
        if (const size_t found = address.find(page); found < at)
            at = found, end = found + page.size();
    const bool names_file = at != address.npos && address.compare(at, 6, "/tree/") != 0;
    if (address.ends_with('/')) address.pop_back();
    if (at == address.npos && shown.empty()) return "";
    if (at == address.npos) at = end = address.size();
    const std::string rest = unescaped(address.substr(std::min(end, address.size())));
    const size_t slash = std::min(rest.find('/'), rest.size());
    if (!rest.empty() && rest.substr(0, slash) != "main")
        throw UsageError(in_quotes(address) + ": only the revision main can be downloaded");
    const std::string file = !shown.empty()        ? shown
                             : slash < rest.size() ? rest.substr(slash + 1)
                                                   : "";
    const std::string whole = address;
    address = address.substr(0, at);
    if ((names_file || !file.empty()) && !lower_ascii(file).ends_with(".gguf"))
        throw UsageError(in_quotes(whole) +
                         ": an address names a repository or a file that ends with .gguf; all of "
                         "this repository is " +
                         address);
    return file;
}

}  // namespace

RepositoryName parse_repository_name(const std::string& text) {
    const std::string rest = without_hub_prefix(text);
    std::string whole = rest.empty() ? text : rest;
    const std::string file = cut_page(whole);
    const size_t slash = whole.find('/'), colon = whole.find(':', slash == whole.npos ? 0 : slash);
    RepositoryName name{.org = {}, .name = {}, .quant = {}, .file = file};
    name.org = whole.substr(0, slash);
    if (slash != whole.npos) name.name = whole.substr(slash + 1, colon - slash - 1);
    if (colon != whole.npos) name.quant = whole.substr(colon + 1);
    if (!is_name(name.org) || !is_name(name.name) || (colon != whole.npos && !is_name(name.quant)))
        throw UsageError(
            in_quotes(text) +
            ": a repository of Hugging Face is named ORG/NAME, or ORG/NAME:QUANT as in "
            "bartowski/Llama-3.2-1B-Instruct-GGUF:Q4_K_M, or by its address, "
            "https://huggingface.co/ORG/NAME");
    return name;
}

Repository parse_repository(const Json& json, const std::string& source) {
    Repository repository{.commit = text_of(json, "sha"), .files = {}};
    const Json* files = json.find("siblings");
    if (!is_hash(repository.commit) || !files || !files->array())
        throw Error(source + ": this is no answer of a hub: 'sha' or 'siblings' is missing");
    if (files->array()->size() > kMostFiles)
        throw Error(source + ": more than " + std::to_string(kMostFiles) + " files");
    for (const Json& item : *files->array()) {
        RepositoryFile file;
        file.path = text_of(item, "rfilename");
        const Json* large = item.find("lfs");
        const bool is_large = large && large->object();
        file.blob = is_large ? text_of(*large, "sha256") : text_of(item, "blobId");
        file.is_sha256 = is_large;
        int64_t size = -1;
        const Json* bytes = is_large ? large->find("size") : item.find("size");
        if (!is_plain_path(file.path) || !is_hash(file.blob) ||
            (is_large && file.blob.size() != 64) || !bytes || !bytes->integer(size) || size < 0)
            throw Error(source + ": the entry of file " + in_quotes(file.path) +
                        " is damaged, or its name is none");
        file.size_bytes = uint64_t(size);
        repository.files.push_back(std::move(file));
    }
    return repository;
}

std::vector<GgufModel> gguf_models_of(const std::vector<RepositoryFile>& files) {
    std::vector<GgufModel> models;
    for (auto& [stem, parts] : gguf_models(files)) models.push_back({quant_of(stem), parts});
    return models;
}

namespace {

// For an error: which split file lacks parts; empty if none does.
std::string missing_parts(const std::vector<RepositoryFile>& files) {
    for (const RepositoryFile& file : files)
        if (const std::optional<GgufName> name = gguf_name(file.path); name && name->parts > 1)
            return "; " + in_quotes(name->stem) + " has " + std::to_string(name->parts) +
                   " parts, and some of them are missing";
    return "";
}

// The model that the file is a part of. Throws Error if there is none.
Parts model_with(const RepositoryName& name, const std::map<std::string, Parts>& models,
                 const std::vector<RepositoryFile>& files) {
    for (const auto& [stem, parts] : models)
        for (const RepositoryFile& part : parts)
            if (part.path == name.file) return parts;
    throw Error(name.id() + ": no model is in " + in_quotes(name.file) +
                (models.empty() ? missing_parts(files) : "; there are " + choices_of(models)));
}

}  // namespace

ModelFilesChoice choose_model(const std::vector<RepositoryFile>& files,
                              const RepositoryName& name) {
    const std::map<std::string, Parts> models = gguf_models(files);
    if (!name.file.empty()) return {model_with(name, models, files), true};
    const std::string quant = name.quant.empty() ? kUsualQuant : name.quant;
    if (models.size() == 1 && name.quant.empty()) return {models.begin()->second, true};
    std::map<std::string, Parts> wanted;
    for (const auto& [stem, parts] : models)
        if (has_word(stem, quant)) wanted[stem] = parts;
    if (wanted.size() == 1) return {wanted.begin()->second, true};
    if (wanted.size() > 1)
        throw Error(name.id() + ": several files are " + quant + ": " + choices_of(wanted) +
                    "; the address of one (https://huggingface.co/" + name.id() +
                    "/blob/main/FILE.gguf) names it");
    if (!models.empty())
        throw Error(name.id() + ": no file is " + quant + "; there are " + choices_of(models));
    if (!name.quant.empty())
        throw Error(name.id() + ": no GGUF file, so that there is no " + name.quant +
                    missing_parts(files));
    Parts folder = folder_of(files);
    if (folder.empty())
        throw Error(name.id() +
                    ": neither a GGUF file nor config.json with weights; this is no model that "
                    "aerie reads" +
                    missing_parts(files));
    return {std::move(folder), false};
}

}  // namespace aerie
