// A repository of Hugging Face's hub: its name, its files, and those of them that make a model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/json.h"

namespace aerie {

struct RepositoryName {
    std::string org, name;
    std::string quant;  // "Q4_K_M"; empty: none was asked for
    std::string file;   // path of a GGUF file in the repository; empty: none was asked for

    std::string id() const { return org + "/" + name; }
};

// The rest of a name that begins with "hf:", "hf.co/", "huggingface.co/" or the same with https://
// or www.; empty if it does not.
std::string without_hub_prefix(const std::string& text);
// Reads "ORG/NAME:QUANT", where ":QUANT" may be missing, with or without such a prefix; or the
// address of a repository's page or of a file in it. Throws UsageError.
RepositoryName parse_repository_name(const std::string& text);

struct RepositoryFile {
    std::string path;  // within the repository, with slashes
    uint64_t size_bytes = 0;
    // The name of its blob: the SHA-256 of the content if it is large, else the hash that git gives
    // it.
    std::string blob;
    bool is_sha256 = false;
};

struct Repository {
    std::string commit;
    std::vector<RepositoryFile> files;
};

// Reads what the hub says of a repository (/api/models/ID/revision/main?blobs=true). `source` names
// it in errors. Throws Error, also for names that would lead out of a folder.
Repository parse_repository(const Json& json, const std::string& source);

// A GGUF model among the files of a repository.
struct GgufModel {
    std::string quant;                  // as ORG/NAME:QUANT asks for it
    std::vector<RepositoryFile> files;  // its parts in order; all of them are there
};
// Without what stands beside models, such as importance matrices; by name.
std::vector<GgufModel> gguf_models_of(const std::vector<RepositoryFile>& files);

// The files that make a model, with the one to open first: a GGUF file and its further parts, or
// config.json, the tokenizer and the weights of a folder.
struct ModelFilesChoice {
    std::vector<RepositoryFile> files;
    bool is_gguf = false;
};

// Chooses the only GGUF file of the files, or that of the wanted quantisation (Q4_K_M if none is
// wanted and there are several); a folder if there is none. Throws Error that names the choices.
ModelFilesChoice choose_model(const std::vector<RepositoryFile>& files, const RepositoryName& name);

}  // namespace aerie
