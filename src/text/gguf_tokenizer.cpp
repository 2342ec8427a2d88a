// Byte-level vocabularies by the name of how they cut a text, scored ones as SentencePiece's.
#include "text/gguf_tokenizer.h"

#include <array>

#include "core/error.h"
#include "core/utf8.h"
#include "text/scored_pieces.h"

namespace aerie {

namespace {

// What a file calls a way to cut a text, and what the original's tokenizer.json has there.
struct CutRow {
    std::string_view name;
    std::string_view split;
    bool ignore_merges = false, nfc = false, adds_bos = false;
};

constexpr std::string_view kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kTekken =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr std::array kCuts{
    CutRow{"gpt-2", kGpt2Split},
    CutRow{"llama-bpe", kLlama3, true, false, true},
    CutRow{"llama3", kLlama3, true, false, true},
    CutRow{"llama-v3", kLlama3, true, false, true},
    CutRow{"smaug-bpe", kLlama3},
    CutRow{"qwen2", kQwen2, false, true},
    CutRow{"deepseek-r1-qwen", kQwen2, false, true},
    CutRow{"tekken", kTekken, true},
};

class Reader {
  public:
    explicit Reader(const GgufMetadata& metadata)
        : metadata_(metadata),
          texts_(metadata.strings("tokenizer.ggml.tokens")),
          types_(metadata.find("tokenizer.ggml.token_type")
                     ? &metadata.integers("tokenizer.ggml.token_type")
                     : nullptr) {
        if (types_ && types_->size() != texts_.size())
            fail("'tokenizer.ggml.token_type' has not one entry for each token");
    }

    BpeTokenizer scored() const;
    BpeTokenizer byte_level() const;
    int token(const char* key) const;  // -1: none
    bool flag(const char* key, bool fallback) const {
        return metadata_.find(key) ? metadata_.boolean(key) : fallback;
    }
    [[noreturn]] void fail(const std::string& why) const {
        throw Error(metadata_.file() + ": " + why);
    }

  private:
    PieceType type(size_t id) const;
    const CutRow& cut() const;
    BpeTokenizer::Parts byte_level_parts(const CutRow& row) const;
    Merges merges(const Vocabulary& vocabulary) const;

    const GgufMetadata& metadata_;
    const GgufValue& texts_;
    const GgufValue* types_;
};

PieceType Reader::type(size_t id) const {
    const int64_t type = types_ ? types_->integer(id).value_or(0) : int64_t(PieceType::normal);
    if (type < 1 || type > 6)
        fail("token " + std::to_string(id) + " is of type " + std::to_string(type) +
             ", which is unknown");
    return PieceType(type);
}

int Reader::token(const char* key) const {
    if (!metadata_.find(key)) return -1;
    const int64_t id = metadata_.integer(key);
    if (id < 0 || uint64_t(id) >= texts_.size())
        fail(in_quotes(key) + " is " + std::to_string(id) + ", which is no token");
    return int(id);
}

BpeTokenizer Reader::scored() const {
    const GgufValue& scores = metadata_.numbers("tokenizer.ggml.scores");
    if (scores.size() != texts_.size())
        fail("'tokenizer.ggml.scores' has not one entry for each token");
    ScoredPieces pieces{.file = metadata_.file(),
                        .pieces = {},
                        .prepends_space = flag("tokenizer.ggml.add_space_prefix", true),
                        .removes_spaces = flag("tokenizer.ggml.remove_extra_whitespaces", false),
                        .bos = token("tokenizer.ggml.bos_token_id"),
                        .eos = token("tokenizer.ggml.eos_token_id"),
                        .adds_bos = flag("tokenizer.ggml.add_bos_token", true),
                        .adds_eos = flag("tokenizer.ggml.add_eos_token", false)};
    const int unknown = token("tokenizer.ggml.unknown_token_id");
    for (size_t id = 0; id < texts_.size(); ++id) {
        ScoredPiece piece{texts_.string(id), float(scores.number(id)), type(id)};
        // Files say that it is a control token, too.
        if (int(id) == unknown) piece.type = PieceType::unknown;
        pieces.byte_fallback = pieces.byte_fallback || piece.type == PieceType::byte;
        pieces.pieces.push_back(piece);
    }
    return tokenizer_of(pieces);
}

const CutRow& Reader::cut() const {
    const std::string_view name = metadata_.string("tokenizer.ggml.pre");
    std::string known;
    for (const CutRow& row : kCuts) {
        if (row.name == name) return row;
        known += (known.empty() ? "" : ", ") + std::string(row.name);
    }
    fail("'tokenizer.ggml.pre' is " + in_quotes(name) + "; known are " + known);
}

Merges Reader::merges(const Vocabulary& vocabulary) const {
    const GgufValue& list = metadata_.strings("tokenizer.ggml.merges");
    Merges merges;
    std::string whole;
    for (size_t rank = 0; rank < list.size(); ++rank) {
        const auto sides = sides_of(list.string(rank));
        if (!sides) throw Error("merge " + std::to_string(rank) + " is no pair of tokens");
        whole.assign(sides->first).append(sides->second);
        merges.add(vocabulary, whole, sides->first.size(), uint32_t(rank));
    }
    return merges;
}

BpeTokenizer::Parts Reader::byte_level_parts(const CutRow& row) const {
    Vocabulary vocabulary;
    std::vector<AddedToken> added;
    for (size_t id = 0; id < texts_.size(); ++id) {
        const std::string_view text = texts_.string(id);
        const PieceType kind = type(id);
        const bool special = kind == PieceType::control || kind == PieceType::unknown;
        if (special || kind == PieceType::user_defined)
            added.push_back({.text = std::string(text), .id = int(id), .special = special});
        else if (kind != PieceType::unused)
            vocabulary.add(text, int(id));
    }
    Merges table = merges(vocabulary);
    const BpeRules rules{.byte_level = true, .ignore_merges = row.ignore_merges};
    BpeTokenizer::Parts parts{.file = metadata_.file(),
                              .bpe = Bpe(std::move(vocabulary), std::move(table), rules)};
    if (row.nfc) parts.normaliser = Normaliser({NormalForm::nfc});
    parts.pre_tokens = PreTokens({PreTokens::Split{Regex(row.split)}});
    parts.added = AddedTokens(std::move(added), parts.normaliser);
    const int bos = token("tokenizer.ggml.bos_token_id"),
              eos = token("tokenizer.ggml.eos_token_id");
    if (bos >= 0 && flag("tokenizer.ggml.add_bos_token", row.adds_bos)) parts.prefix = {bos};
    if (eos >= 0 && flag("tokenizer.ggml.add_eos_token", false)) parts.suffix = {eos};
    parts.decoder = TokenDecoder({TokenDecoder::ByteLevel{}});
    return parts;
}

BpeTokenizer Reader::byte_level() const {
    const CutRow& row = cut();
    const auto parts = [&] {
        try {
            return byte_level_parts(row);
        } catch (const Error& error) {
            const std::string what = error.what();
            if (what.starts_with(metadata_.file())) throw;
            fail(what);
        }
    };
    return BpeTokenizer(parts());
}

}  // namespace

std::string_view find_cut(std::string_view split, bool ignore_merges, bool nfc) {
    for (const CutRow& row : kCuts)
        if (row.split == split && row.ignore_merges == ignore_merges && row.nfc == nfc)
            return row.name;
    return "";
}

GgufTokenizer gguf_tokenizer(const GgufMetadata& metadata) {
    const Reader reader(metadata);
    const std::string_view model = metadata.string("tokenizer.ggml.model");
    if (model != "llama" && model != "gpt2")
        reader.fail("a tokenizer of kind " + in_quotes(model) + " is not supported");
    GgufTokenizer made{.bpe = model == "llama" ? reader.scored() : reader.byte_level(),
                       .bos = reader.token("tokenizer.ggml.bos_token_id"),
                       .eos = reader.token("tokenizer.ggml.eos_token_id"),
                       .chat_template = ""};
    if (metadata.find("tokenizer.chat_template"))
        made.chat_template = metadata.string("tokenizer.chat_template");
    return made;
}

}  // namespace aerie
