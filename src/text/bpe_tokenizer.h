// Byte pair encoding from text to token ids and back, as tokenizer.json describes it: added tokens,
// normaliser, pre-tokenizer, merges, the ids around a text, and the decoder.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/added_tokens.h"
#include "text/bpe.h"
#include "text/normalise.h"
#include "text/pre_tokens.h"
#include "text/token_decoder.h"

namespace aerie {

class BpeTokenizer {
  public:
    struct Parts {
        std::string file;  // as errors name it
        Bpe bpe;
        Normaliser normaliser = {};
        PreTokens pre_tokens = {};
        AddedTokens added = {};  // their ids may be outside of the vocabulary
        std::vector<int> prefix = {}, suffix = {};
        TokenDecoder decoder = TokenDecoder();
    };
    // Throws Error naming the file if an added token contradicts the vocabulary.
    explicit BpeTokenizer(Parts parts);

    // Reads a tokenizer.json as the tokenizers library writes it. A part that is not supported is
    // an error that names it; truncation and padding are ignored. Throws Error.
    static BpeTokenizer from_json(std::string_view json, const std::string& file);

    const Parts& parts() const { return *parts_; }

    int size() const { return int(names_.size()); }  // the highest id + 1; there may be gaps
    int id_of(std::string_view text) const;          // by its spelling in the file; -1: none
    std::string_view text(int id) const;  // spelling in the file; empty for an unknown id
    bool is_added(int id) const;
    bool is_special(int id) const;  // an added token that is a control token
    // The ids that belong before and after a whole text (BOS, EOS).
    const std::vector<int>& prefix() const { return parts_->prefix; }
    const std::vector<int>& suffix() const { return parts_->suffix; }
    // Whether decoding removes a leading space that encoding added.
    bool drops_leading_space() const { return parts_->decoder.drops_leading_space(); }

    // Ids of a text, without prefix and suffix. Bytes that are not UTF-8 count as U+FFFD. Throws
    // UsageError if the text is larger than 64 MB, Error naming the file if a pattern takes too
    // long.
    std::vector<int> encode(std::string_view text, Recognised recognised = Recognised::all) const {
        return encode(text, Recognition{recognised});
    }
    std::vector<int> encode(std::string_view text, const Recognition& recognition) const;
    // The same with prefix and suffix.
    std::vector<int> encode_whole(std::string_view text,
                                  Recognised recognised = Recognised::all) const;

    // The text of some ids; unknown ids are left out, bytes that are not UTF-8 become U+FFFD.
    std::string decode(const std::vector<int>& ids, bool skip_special) const;
    // Bytes of one token inside a text, for decoding token by token; empty for a special token or
    // an unknown id. The space of drops_leading_space is still there.
    std::string_view bytes(int id) const;

  private:
    struct Name {
        uint32_t begin = 0, size = 0;  // in bytes_
        bool is_used = false, is_special = false, is_added = false;
        uint32_t added = 0;  // index in the added tokens
    };
    void name_tokens();
    std::string_view spelling(int id) const;  // the text that decoding starts from
    struct Work;
    void encode_raw(std::string_view text, Recognition recognition, Work& work) const;
    void encode_text(std::string_view text, bool begins_text, Work& work) const;

    std::shared_ptr<const Parts> parts_;
    std::vector<Name> names_;  // by id
    std::string bytes_;
};

}  // namespace aerie
