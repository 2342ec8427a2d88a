// Text to token ids and back, for SentencePiece models (tokenizer.model).
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/model_source.h"

namespace aerie {

class Tokenizer {
  public:
    // Of a tokenizer.model (checked by check_sentencepiece_model first) and, if there, bos/eos and
    // the chat template of tokenizer_config.json. Throws Error.
    static Tokenizer load(const TokenizerSource& source);
    static Tokenizer load(const std::filesystem::path& folder) {
        return load(read_tokenizer(folder));
    }
    // A tokenizer.model alone; `file` names it in errors.
    static Tokenizer from_bytes(std::string_view model, const std::string& file);
    Tokenizer(Tokenizer&&) noexcept;
    Tokenizer& operator=(Tokenizer&&) noexcept;
    ~Tokenizer();

    int size() const;
    int bos() const;  // -1: none
    int eos() const;  // -1: none
    bool adds_bos() const;
    bool drops_leading_space() const;  // decoded text loses one space that encoding has added
    const std::string& chat_template() const;  // empty: none

    // Ids of plain text, without BOS; special tokens in the text are plain text. Throws UsageError
    // if the text is larger than 4 MB (64 KB for a model without byte pieces).
    std::vector<int> encode(std::string_view text) const;
    // The same with BOS in front where the model wants it: what a prompt or a document begins as.
    std::vector<int> encode_from_start(std::string_view text) const;
    // Bytes of one token: a byte token gives its byte, a control token nothing; U+2581 becomes a
    // space. At the start of a text one leading space is dropped by TextStream, not here. Other ids
    // (models pad their vocabulary) give nothing.
    std::string_view bytes(int id) const;
    // The whole text of some ids, as TextStream gives it without stop strings.
    std::string decode(const std::vector<int>& ids) const;

  private:
    Tokenizer();
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

// Throws Error naming `file` unless the bytes are a SentencePiece model that the library can take
// without harm: well-formed protobuf, sane piece count, types and scores, no normalisation map.
void check_sentencepiece_model(std::string_view bytes, const std::string& file);

}  // namespace aerie
