// Reads a tokenizer.json: vocabulary and merges as a stream, the other parts from a small document.
#include "text/tokenizer_json.h"

#include "core/error.h"
#include "core/utf8.h"

namespace aerie {
namespace {

// Twice the size of the largest vocabularies in use.
constexpr size_t kMaxFileBytes = size_t(64) << 20;
constexpr size_t kMaxMerges = size_t(1) << 21;
constexpr size_t kMaxTokenBytes = size_t(64) << 10;
constexpr size_t kMaxValues = 600'000;  // beside these lists: eight for each added token

void check_token(std::string_view text) {
    if (text.size() > kMaxTokenBytes) {
        throw Error("token " + in_quotes(text) + " has more than " +
                    std::to_string(kMaxTokenBytes) + " bytes");
    }
}

// "vocab": tokens and their ids. A value of another kind is only noted, because the type of the
// model may follow it.
class VocabularyPart : public JsonPart {
  public:
    VocabularyPart() : JsonPart("model", "vocab") {}

    void open(bool is_array) override { is_wrong = is_wrong || is_array || ++depth_ > 1; }
    void key(std::string_view name) override {
        check_token(name);
        key_ = name;
    }
    void integer(int64_t value) override {
        if (is_wrong || depth_ != 1) return other();
        if (value < 0 || value >= Vocabulary::kMaxIds) {
            throw Error("token " + in_quotes(key_) + " has the id " + std::to_string(value) +
                        ", which is out of range");
        }
        vocabulary.add(key_, int(value));
        is_there = true;
    }
    void string(std::string_view) override { other(); }
    void other() override { is_wrong = true; }

    Vocabulary vocabulary;
    bool is_there = false, is_wrong = false;

  private:
    int depth_ = 0;
    std::string key_;
};

// "merges": each is "a b" or ["a", "b"].
class MergesPart : public JsonPart {
  public:
    MergesPart() : JsonPart("model", "merges") {}

    void open(bool is_array) override {
        if (!is_array || ++depth_ > 2) refuse();
        sides_ = 0;
    }
    void close() override {
        if (--depth_ == 1 && sides_ != 2) refuse();
    }
    void string(std::string_view value) override {
        if (depth_ == 1) {
            const auto sides = sides_of(value);
            if (!sides) refuse();
            add(sides->first);
            add(sides->second);
        } else if (depth_ == 2 && ++sides_ <= 2) {
            add(value);
        } else {
            refuse();
        }
    }
    void other() override { refuse(); }

    Merges merges(const Vocabulary& vocabulary) const;

  private:
    [[noreturn]] void refuse() const {
        throw Error("merge " + std::to_string(sizes_.size() / 2) + " is no pair of tokens");
    }
    void add(std::string_view side) {
        if (side.empty()) refuse();
        check_token(side);
        if (sizes_.size() >= 2 * kMaxMerges) {
            throw Error("more than " + std::to_string(kMaxMerges) + " merges");
        }
        texts_ += side;
        sizes_.push_back(uint32_t(side.size()));
    }

    int depth_ = 0, sides_ = 0;
    std::string texts_;            // left and right, one after the other
    std::vector<uint32_t> sizes_;  // bytes of each side
};

Merges MergesPart::merges(const Vocabulary& vocabulary) const {
    Merges merges;
    size_t at = 0;
    for (size_t i = 0; i < sizes_.size(); i += 2) {
        const size_t bytes = sizes_[i] + size_t(sizes_[i + 1]);
        merges.add(vocabulary, std::string_view(texts_).substr(at, bytes), sizes_[i],
                   uint32_t(i / 2));
        at += bytes;
    }
    return merges;
}

void refuse_unless_empty(const Json& model, const char* name) {
    const Json* value = model.find(name);
    if (tokenizer_json::absent(value) || (value->string() && value->string()->empty())) return;
    if (value->is_number() && value->number() == 0) return;
    throw Error(std::string(name) + " of the model is not supported", Cause::unsupported);
}

// `part` was filled while the document was parsed.
Bpe model(const Json& root, VocabularyPart& part, const MergesPart& merges, bool byte_level) {
    const Json* model = root.find("model");
    if (!model || !model->object()) throw Error("no model");
    if (const Json* type = model->find("type")) {
        if (!type->string() || *type->string() != "BPE") {
            throw Error("model " + in_quotes(type->string() ? *type->string() : "of no type") +
                            " is not supported, only 'BPE'",
                        Cause::unsupported);
        }
    }
    for (const char* name : {"dropout", "continuing_subword_prefix", "end_of_word_suffix"}) {
        refuse_unless_empty(*model, name);
    }
    if (part.is_wrong || !part.is_there) throw Error("vocab of model is no table of ids");
    const bool no = false;
    BpeRules rules{.byte_level = byte_level,
                   .byte_fallback = tokenizer_json::flag(*model, "byte_fallback", &no),
                   .ignore_merges = tokenizer_json::flag(*model, "ignore_merges", &no),
                   .fuse_unknown = tokenizer_json::flag(*model, "fuse_unk", &no)};
    if (!tokenizer_json::absent(model->find("unk_token"))) {
        const std::string& unknown = tokenizer_json::string(*model, "unk_token");
        rules.unknown = part.vocabulary.id_of(unknown);
        if (rules.unknown < 0) throw Error("unk_token " + in_quotes(unknown) + " is no token");
    }
    Merges table = merges.merges(part.vocabulary);
    return Bpe(std::move(part.vocabulary), std::move(table), rules);
}

BpeTokenizer::Parts parts_of(const Json& root, VocabularyPart& vocabulary, const MergesPart& merges,
                             const std::string& file) {
    if (!root.object()) throw Error("no JSON object");
    tokenizer_json::Cutting cutting = tokenizer_json::cutting(root.find("pre_tokenizer"));
    BpeTokenizer::Parts parts{file, model(root, vocabulary, merges, cutting.byte_level)};
    parts.pre_tokens = std::move(cutting.pre_tokens);
    parts.normaliser = tokenizer_json::normaliser(root.find("normalizer"));
    parts.added =
        AddedTokens(tokenizer_json::added_tokens(root.find("added_tokens")), parts.normaliser);
    tokenizer_json::Around around = tokenizer_json::around(root.find("post_processor"));
    parts.prefix = std::move(around.prefix);
    parts.suffix = std::move(around.suffix);
    parts.decoder = tokenizer_json::decoder(root.find("decoder"));
    return parts;
}

}  // namespace

BpeTokenizer BpeTokenizer::from_json(std::string_view json, const std::string& file) {
    if (json.size() > kMaxFileBytes) throw Error(file + ": larger than 64 MB");
    VocabularyPart vocabulary;
    MergesPart merges;
    JsonPart* const streamed[] = {&vocabulary, &merges};
    const Json root = Json::parse(json, file, streamed, kMaxValues);
    const auto parts = [&] {
        try {
            return parts_of(root, vocabulary, merges, file);
        } catch (const Error& error) {
            throw Error(file + ": " + error.what(), error.cause());
        }
    };
    return BpeTokenizer(parts());
}

}  // namespace aerie
