// Byte-level vocabularies are written with their merges, all others with scores.
#include "text/gguf_tokenizer_writer.h"

#include <algorithm>

#include "core/error.h"
#include "core/utf8.h"
#include "io/input_file.h"
#include "text/byte_alphabet.h"
#include "text/gguf_pre_tokenizers.h"
#include "text/gguf_tokenizer.h"
#include "text/scored_pieces.h"

namespace aerie {
namespace {

constexpr const char* kPrefix = "tokenizer.";

class Description {
  public:
    Description(const Tokenizer& tokenizer, int vocab, GgufMetadata& metadata)
        : tokenizer_(tokenizer),
          bpe_(tokenizer.bpe()),
          vocab_(size_t(std::max(vocab, tokenizer.size()))),
          metadata_(metadata) {}

    void scored(const ScoredPieces* pieces);
    void byte_level();
    void tokens(const std::vector<PieceType>& types);
    void ends(std::span<const int> ends);
    std::vector<std::string> check() const;

  private:
    bool is_same(const GgufTokenizer& made, const std::string& text) const;
    template <class T>
    void set(const std::string& key, T value) {
        metadata_.add("tokenizer.ggml." + key, GgufValue::of(value));
    }
    template <class T>
    void set_list(const std::string& key, const T& values) {
        metadata_.add("tokenizer.ggml." + key, GgufValue::list(values));
    }
    [[noreturn]] void fail(const std::string& why) const {
        throw Error(tokenizer_.file() + ": " + why);
    }
    std::vector<PieceType> types() const;
    std::string_view pre_tokenizer() const;

    const Tokenizer& tokenizer_;
    const BpeTokenizer& bpe_;
    size_t vocab_;
    GgufMetadata& metadata_;
};

std::vector<PieceType> Description::types() const {
    const BpeRules& rules = bpe_.parts().bpe.rules();
    std::vector<PieceType> types(vocab_, PieceType::unused);
    for (size_t i = 0; i < vocab_; ++i) {
        const int id = int(i);
        const std::string_view text = bpe_.text(id);
        if (text.empty()) continue;
        if (!rules.byte_level && id == rules.unknown)
            types[i] = PieceType::unknown;
        else if (bpe_.is_special(id))
            types[i] = PieceType::control;
        else if (bpe_.is_added(id))
            types[i] = PieceType::user_defined;
        else if (rules.byte_fallback && byte_of_token(text) >= 0)
            types[i] = PieceType::byte;
        else
            types[i] = PieceType::normal;
    }
    return types;
}

// Ids without a token get one that no text becomes, as in llama.cpp's converter.
void Description::tokens(const std::vector<PieceType>& types) {
    std::vector<std::string> made(vocab_);
    std::vector<std::string_view> texts;
    for (size_t i = 0; i < vocab_; ++i) {
        texts.push_back(bpe_.text(int(i)));
        if (!texts.back().empty()) continue;
        made[i] = "[PAD" + std::to_string(i) + "]";
        texts.back() = made[i];
    }
    set_list("tokens", texts);
    std::vector<int32_t> numbers;
    for (const PieceType type : types) numbers.push_back(int32_t(type));
    set_list("token_type", std::span<const int32_t>(numbers));
}

// Writes the scores of a tokenizer.model, or scores made of the order of the merges.
void Description::scored(const ScoredPieces* pieces) {
    set("model", std::string_view("llama"));
    set("pre", std::string_view("default"));
    std::vector<float> scores(vocab_, 0.0f);
    std::vector<PieceType> all = types();
    if (pieces) {
        for (size_t i = 0; i < pieces->pieces.size(); ++i) {
            scores[i] = pieces->pieces[i].score;
            all[i] = pieces->pieces[i].type;
        }
        set("add_space_prefix", pieces->prepends_space);
        if (pieces->removes_spaces) set("remove_extra_whitespaces", true);
    } else {
        std::vector<bool> is_merged(vocab_);
        bpe_.parts().bpe.merges().for_each([&](int, int, const Merge& merge) {
            const size_t id = size_t(merge.merged);
            const float score = -float(merge.rank) - 1;
            scores[id] = is_merged[id] ? std::max(scores[id], score) : score;
            is_merged[id] = true;
        });
        set("add_space_prefix", tokenizer_.drops_leading_space());
    }
    tokens(all);
    set_list("scores", std::span<const float>(scores));
    const int unknown = bpe_.parts().bpe.rules().unknown;
    if (unknown >= 0) set("unknown_token_id", uint32_t(unknown));
}

// The value of tokenizer.ggml.pre.
std::string_view Description::pre_tokenizer() const {
    const GgufPreTokenizer* pre_tokenizer = find_gguf_pre_tokenizer(bpe_.parts());
    if (!pre_tokenizer) fail("GGUF has no name that we know for how this tokenizer cuts a text");
    return pre_tokenizer->name;
}

void Description::byte_level() {
    set("model", std::string_view("gpt2"));
    set("pre", pre_tokenizer());
    tokens(types());
    struct Row {
        uint32_t rank;
        std::string text;
    };
    std::vector<Row> rows;
    const Vocabulary& vocabulary = bpe_.parts().bpe.vocabulary();
    bpe_.parts().bpe.merges().for_each([&](int left, int right, const Merge& merge) {
        rows.push_back({merge.rank, std::string(vocabulary.text(left)) + " " +
                                        std::string(vocabulary.text(right))});
    });
    std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.rank < b.rank; });
    std::vector<std::string_view> merges;
    for (const Row& row : rows) merges.push_back(row.text);
    set_list("merges", merges);
}

// Writes BOS and EOS under their keys; GGUF can put at most one of each around a text.
void Description::ends(std::span<const int> ends) {
    const std::vector<int>&prefix = tokenizer_.prefix(), &suffix = tokenizer_.suffix();
    const auto named = [](int id, const std::vector<int>& around) {
        return id < 0 && around.size() == 1 ? around[0] : id;
    };
    const int bos = named(tokenizer_.bos(), prefix), eos = named(tokenizer_.eos(), suffix);
    const auto is_only = [](const std::vector<int>& around, int id) {
        return around.empty() || (around.size() == 1 && around[0] == id);
    };
    if (!is_only(prefix, bos) || !is_only(suffix, eos))
        fail("what it puts around a text is not BOS and EOS; GGUF cannot say that");
    set("add_bos_token", !prefix.empty());
    set("add_eos_token", !suffix.empty());
    if (bos >= 0) set("bos_token_id", uint32_t(bos));
    std::vector<int> ids(ends.begin(), ends.end());
    std::erase(ids, eos);
    if (eos >= 0) ids.insert(ids.begin(), eos);
    constexpr const char* kKeys[] = {"eos_token_id", "eot_token_id", "eom_token_id"};
    for (size_t i = 0; i < std::min(ids.size(), std::size(kKeys)); ++i)
        set(kKeys[i], uint32_t(ids[i]));
}

bool Description::is_same(const GgufTokenizer& made, const std::string& text) const {
    const std::vector<int> ids = tokenizer_.encode_whole(text);
    return made.bpe.encode_whole(text, Recognised::none) == ids &&
           made.bpe.decode(ids, false) == bpe_.decode(ids, false);
}

// Compares the tokenizers on lines of a few tokens, which together have the whole vocabulary.
std::vector<std::string> Description::check() const {
    constexpr size_t kTokensOfLine = 4;
    const GgufTokenizer made = gguf_tokenizer(metadata_);
    const size_t count = size_t(bpe_.size()), lines = count / kTokensOfLine + 1;
    for (size_t i = 0; i < lines; ++i) {
        std::string line;
        for (size_t id = i; id < count; id += lines) line += bpe_.bytes(int(id));
        line.erase(0, line.find_first_not_of(' '));
        if (!is_same(made, line))
            fail("GGUF cannot say this tokenizer: read back, it gives other ids for " +
                 in_quotes(line));
    }
    if (is_same(made, " a") && is_same(made, "  a")) return {};
    return {
        "GGUF does not say what this tokenizer does with a space at the begin of a text: such "
        "texts get other ids"};
}

void add_unsaid(const BpeTokenizer& bpe, std::vector<std::string>& lines) {
    size_t count = 0;
    for (const AddedToken& token : bpe.parts().added.tokens())
        count += token.single_word || token.takes_left || token.takes_right;
    if (count > 0)
        lines.push_back("GGUF does not say that " + std::to_string(count) +
                        " added tokens take the white space beside them, or stand alone");
}

}  // namespace

std::vector<std::string> describe_tokenizer(const TokenizerSource& source,
                                            const Tokenizer& tokenizer, int vocab,
                                            std::span<const int> ends, GgufMetadata& metadata) {
    if (source.gguf) {
        for (const auto& [key, value] : source.gguf->metadata().values())
            if (key.starts_with(kPrefix)) metadata.add(key, value);
        return {};
    }
    Description description(tokenizer, vocab, metadata);
    if (tokenizer.bpe().parts().bpe.rules().byte_level) {
        description.byte_level();
    } else if (source.format == TokenizerSource::Format::sentencepiece) {
        constexpr size_t kMaxBytes = 16 << 20;
        const std::string bytes = read_text(source.path, kMaxBytes);
        const ScoredPieces pieces = read_sentencepiece(bytes, source.file);
        description.scored(&pieces);
    } else {
        description.scored(nullptr);
    }
    description.ends(ends);
    if (!tokenizer.chat_template().text.empty())
        metadata.add("tokenizer.chat_template",
                     GgufValue::of(std::string_view(tokenizer.chat_template().text)));
    std::vector<std::string> lines = description.check();
    add_unsaid(tokenizer.bpe(), lines);
    return lines;
}

}  // namespace aerie
