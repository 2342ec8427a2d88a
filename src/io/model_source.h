// A model as it lies on disk: the one value that everything above reads, whatever the file format.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "io/checkpoint.h"
#include "io/gguf/gguf.h"
#include "io/json.h"

namespace aerie {

// A JSON object and the name of its file, for errors. `names` maps keys of the object to the names
// that the file itself has for them, where those differ.
struct NamedJson {
    Json json;
    std::string file;
    std::map<std::string, std::string> names = {};
};

struct NamedText {
    std::string text, file;
};

// Where a tokenizer lies; text/tokenizer.h reads it.
struct TokenizerSource {
    enum class Format { tokenizer_json, sentencepiece, gguf };

    Format format = Format::tokenizer_json;
    std::string file;                        // as errors name it
    std::filesystem::path path;              // the tokenizer's own file, if it has one
    std::shared_ptr<const Gguf> gguf;        // or the file that has it in its metadata
    std::optional<NamedJson> config;         // tokenizer_config.json
    std::optional<NamedText> chat_template;  // chat_template.jinja
    size_t text_bytes = 0;                   // bytes of texts that stay in memory with `gguf`
};

struct ModelSource {
    std::filesystem::path path;                // as errors and reports name the model
    NamedJson config;                          // config.json of a Hugging Face model
    std::optional<NamedJson> generation;       // generation_config.json
    std::optional<TokenizerSource> tokenizer;  // a head has none
    Checkpoint tensors;                        // under their Hugging Face names
};

// Opens a GGUF file, or else a model folder. Checks as much as it reads: JSON and the headers of
// tensor files. Throws Error naming the file.
ModelSource open_model(const std::filesystem::path& path);
// Whether the name ends in .gguf, or a file begins as GGUF does (Ollama's have no ending).
bool is_gguf(const std::filesystem::path& path);
// Names the form of a file that is no GGUF file, for an error: "a web page; ...". Throws Error if
// it cannot be read.
std::string what_it_is_instead(const std::filesystem::path& path);

// The tokenizer alone: tokenizer.json, or else tokenizer.model. Throws Error if there is none.
TokenizerSource find_tokenizer(const std::filesystem::path& path);

}  // namespace aerie
