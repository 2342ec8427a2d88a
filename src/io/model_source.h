// A model as it lies on disk: the one value that everything above reads, whatever the file format.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "io/checkpoint.h"
#include "io/json.h"

namespace aerie {

// A JSON object and the name of its file, for errors.
struct NamedJson {
    Json json;
    std::string file;
};

// What a tokenizer is made of; text/tokenizer.h reads it.
struct TokenizerSource {
    std::string file;                 // names the bytes in errors
    std::string bytes;                // a SentencePiece model
    std::optional<NamedJson> config;  // tokenizer_config.json
};

struct ModelSource {
    std::filesystem::path path;                // as errors and reports name the model
    NamedJson config;                          // config.json of a Hugging Face model
    std::optional<NamedJson> generation;       // generation_config.json
    std::optional<TokenizerSource> tokenizer;  // a head has none
    Checkpoint tensors;                        // by the names that Hugging Face gives them
};

// Opens a model folder. Checks what lies there as far as it is read here: JSON, headers of tensor
// files. Throws Error naming the file.
ModelSource open_model(const std::filesystem::path& path);

// The tokenizer alone. Throws Error if there is none.
TokenizerSource read_tokenizer(const std::filesystem::path& folder);

}  // namespace aerie
