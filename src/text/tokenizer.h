// Text to token ids and back, from any of the supported tokenizer files.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/model_source.h"
#include "text/bpe_tokenizer.h"

namespace aerie {

class Tokenizer {
  public:
    // Loads a tokenizer.json, a tokenizer.model or a GGUF file, with the names of special tokens
    // and the chat template that lie beside it. Throws Error.
    static Tokenizer load(const TokenizerSource& source);
    static Tokenizer load(const std::filesystem::path& path) { return load(find_tokenizer(path)); }
    // A tokenizer.model alone; `file` names it in errors.
    static Tokenizer from_bytes(std::string_view model, const std::string& file);

    int size() const { return bpe_.size(); }
    int bos() const { return bos_; }  // -1: none
    int eos() const { return eos_; }  // -1: none
    bool drops_leading_space() const { return bpe_.drops_leading_space(); }
    // Special tokens under the names that chat templates have for them: "bos_token".
    const std::vector<std::pair<std::string, std::string>>& named_tokens() const { return named_; }
    const NamedText& chat_template() const { return chat_template_; }  // without text: none
    const std::string& file() const { return file_; }
    // The most bytes of a text that become one token; 0: there is no such bound. A text of more
    // than n times as many becomes more than n tokens, BOS not counted. A caller with room for n
    // can refuse it at once, where encoding takes a second and 40 MB for each MB:
    //     longest_token_bytes() > 0 && text.size() / longest_token_bytes() > n
    // The same holds for the text of a chat, with its control tokens.
    size_t longest_token_bytes() const { return longest_token_bytes_; }
    // The tokenizer's own rules.
    const BpeTokenizer& bpe() const { return bpe_; }

    // Ids of a text that stands inside another. Throws UsageError if it is larger than 64 MB.
    std::vector<int> encode(std::string_view text, Recognised recognised = Recognised::none) const {
        return bpe_.encode(text, recognised);
    }
    // Ids of the beginning of a prompt or a document: with BOS in front if the model wants it.
    std::vector<int> encode_from_start(std::string_view text,
                                       Recognised recognised = Recognised::none) const;
    // The same with the ids that belong behind a whole text, such as EOS.
    std::vector<int> encode_whole(std::string_view text,
                                  Recognised recognised = Recognised::none) const;
    const std::vector<int>& prefix() const { return prefix_; }  // around a whole text
    const std::vector<int>& suffix() const { return suffix_; }
    // Bytes of one token: a byte token gives its byte, a special token nothing. At the start of a
    // text one leading space is dropped by TextStream, not here. Other ids (models pad their
    // vocabulary) give nothing.
    std::string_view bytes(int id) const { return bpe_.bytes(id); }
    // The whole text of some ids, as TextStream gives it without stop strings.
    std::string decode(const std::vector<int>& ids) const;

  private:
    Tokenizer(BpeTokenizer bpe, std::string file);
    static Tokenizer of_gguf(const TokenizerSource& source);
    void read_config(const NamedJson& config, TokenizerSource::Format format);
    void read_around(const NamedJson& config, TokenizerSource::Format format);
    void name_tokens();

    BpeTokenizer bpe_;
    std::string file_;
    size_t longest_token_bytes_ = 0;
    int bos_ = -1, eos_ = -1;
    std::vector<int> prefix_, suffix_;
    std::vector<std::pair<std::string, std::string>> named_;
    NamedText chat_template_;
};

}  // namespace aerie
