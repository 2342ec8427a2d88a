// Text to token ids and back for byte pair encoding, as tokenizer.json describes it: added tokens,
// a normaliser, words, merges, what is put around a text, and the way back.
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
        std::string file;  // names it in errors
        Bpe bpe;
        Normaliser normaliser = {};
        PreTokens pre_tokens = {};
        AddedTokens added = {};  // their ids may be outside of the vocabulary
        std::vector<int> prefix = {}, suffix = {};
        TokenDecoder decoder = TokenDecoder();
    };
    // Throws Error naming the file if an added token contradicts the vocabulary.
    explicit BpeTokenizer(Parts parts);

    // A tokenizer.json as the tokenizers library writes it. What it asks for and we do not have is
    // an error that names it; truncation and padding are not looked at. Throws Error.
    static BpeTokenizer from_json(std::string_view json, const std::string& file);

    const Parts& parts() const { return *parts_; }

    int size() const { return int(names_.size()); }  // the highest id + 1; there may be gaps
    int id_of(std::string_view text) const;          // of a token as the file spells it; -1: none
    std::string_view text(int id) const;  // as the file spells it; empty for an unknown id
    bool is_added(int id) const;
    bool is_special(int id) const;  // added, and a control token
    // What belongs before and after a whole text (BOS, EOS).
    const std::vector<int>& prefix() const { return parts_->prefix; }
    const std::vector<int>& suffix() const { return parts_->suffix; }
    // Decoded text loses one space that encoding has added.
    bool drops_leading_space() const { return parts_->decoder.drops_leading_space(); }

    // Ids of a text, without prefix and suffix. Bytes that are no UTF-8 count as U+FFFD. Throws
    // UsageError if the text is larger than 64 MB, Error naming the file if a pattern takes too
    // long.
    std::vector<int> encode(std::string_view text, Recognised recognised = Recognised::all) const {
        return encode(text, Recognition{recognised});
    }
    std::vector<int> encode(std::string_view text, const Recognition& recognition) const;
    // The same with prefix and suffix.
    std::vector<int> encode_whole(std::string_view text,
                                  Recognised recognised = Recognised::all) const;

    // The text of some ids; unknown ids are left out, bytes that are no UTF-8 become U+FFFD.
    std::string decode(const std::vector<int>& ids, bool skip_special) const;
    // Bytes of one token inside a text, for decoding piece by piece: nothing for a special token
    // or an unknown id. The space that drops_leading_space tells of is still there.
    std::string_view bytes(int id) const;

  private:
    struct Name {
        uint32_t begin = 0, size = 0;  // in bytes_
        bool is_used = false, is_special = false, is_added = false;
        uint32_t added = 0;  // index in the added tokens
    };
    void name_tokens();
    std::string_view spelling(int id) const;  // what decoding begins with
    struct Work;
    void encode_raw(std::string_view text, Recognition recognition, Work& work) const;
    void encode_text(std::string_view text, bool begins_text, Work& work) const;

    std::shared_ptr<const Parts> parts_;
    std::vector<Name> names_;  // by id
    std::string bytes_;
};

}  // namespace aerie
