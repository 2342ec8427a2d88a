// Pieces checked, then sorted into vocabulary, scores and added tokens.
#include "text/scored_pieces.h"

#include <cmath>

#include "core/error.h"
#include "core/utf8.h"
#include "text/byte_alphabet.h"

namespace aerie {

namespace {

constexpr size_t kMaxPieces = 500'000;
constexpr size_t kMaxPieceBytes = 1024;
constexpr const char* kSpace = "\xE2\x96\x81";  // U+2581

class Sorter {
  public:
    explicit Sorter(const ScoredPieces& pieces) : from_(pieces) {
        if (from_.pieces.empty()) fail("no pieces");
        if (from_.pieces.size() > kMaxPieces)
            fail("more than " + std::to_string(kMaxPieces) + " pieces");
        for (const ScoredPiece& piece : from_.pieces) add(piece);
        const int unknowns = int(unknown_ >= 0) + more_unknowns_;
        if (unknowns != 1) fail(std::to_string(unknowns) + " unknown pieces, expected one");
        const int expected = from_.byte_fallback ? 256 : 0;
        if (bytes_ != expected)
            fail(std::to_string(bytes_) + " byte pieces, expected " +
                 (expected > 0 ? "256" : "none without byte fallback"));
    }

    BpeTokenizer::Parts parts() && {
        Merges merges = merges_by_score(vocabulary_, scores_);
        const BpeRules rules{
            .byte_fallback = from_.byte_fallback, .fuse_unknown = true, .unknown = unknown_};
        BpeTokenizer::Parts parts{.file = from_.file,
                                  .bpe = Bpe(std::move(vocabulary_), std::move(merges), rules)};
        parts.normaliser = normaliser();
        parts.added = AddedTokens(std::move(added_), parts.normaliser);
        if (from_.adds_bos && from_.bos >= 0) parts.prefix = {from_.bos};
        if (from_.adds_eos && from_.eos >= 0) parts.suffix = {from_.eos};
        parts.decoder = decoder();
        return parts;
    }

  private:
    [[noreturn]] void fail(const std::string& why) const { throw Error(from_.file + ": " + why); }
    void add(const ScoredPiece& piece);
    void check(const ScoredPiece& piece) const;
    Normaliser normaliser() const;
    TokenDecoder decoder() const;

    const ScoredPieces& from_;
    Vocabulary vocabulary_;
    std::vector<float> scores_;
    std::vector<AddedToken> added_;
    int unknown_ = -1, more_unknowns_ = 0, bytes_ = 0;
};

void Sorter::check(const ScoredPiece& piece) const {
    const std::string shown = "piece " + in_quotes(piece.text);
    if (piece.text.empty()) fail("empty piece");
    if (piece.text.size() > kMaxPieceBytes) fail(shown + " is too long");
    if (!is_utf8(piece.text) || piece.text.find('\0') != std::string_view::npos)
        fail(shown + " is no UTF-8 text");
    if (vocabulary_.id_of(piece.text) >= 0) fail(shown + " is there twice");
    if (!std::isfinite(piece.score)) fail(shown + " has no finite score");
    if (piece.type == PieceType::byte && byte_of_token(piece.text) < 0)
        fail("byte " + shown + ", expected one like '<0x0A>'");
}

void Sorter::add(const ScoredPiece& piece) {
    check(piece);
    const int id = vocabulary_.size();
    vocabulary_.add(piece.text, id);
    scores_.push_back(piece.type == PieceType::normal ? piece.score : NAN);
    bytes_ += piece.type == PieceType::byte;
    if (piece.type == PieceType::unknown) (unknown_ < 0 ? unknown_ = id : ++more_unknowns_);
    const bool special = piece.type == PieceType::control || piece.type == PieceType::unknown;
    if (special || piece.type == PieceType::user_defined)
        added_.push_back({.text = std::string(piece.text), .id = id, .special = special});
}

Normaliser Sorter::normaliser() const {
    std::vector<Normaliser::Step> steps;
    if (from_.removes_spaces) {
        steps.emplace_back(Normaliser::Replace{Regex("^ +| +$"), ""});
        steps.emplace_back(Normaliser::Replace{Regex(" +"), " "});
    }
    const std::string space = from_.escapes_spaces ? kSpace : " ";
    if (from_.prepends_space) steps.emplace_back(Normaliser::Prepend{space});
    if (from_.escapes_spaces) steps.emplace_back(Normaliser::Replace{" ", kSpace});
    return Normaliser(std::move(steps));
}

TokenDecoder Sorter::decoder() const {
    std::vector<TokenDecoder::Step> steps{TokenDecoder::Replace{kSpace, " "},
                                          TokenDecoder::ByteFallback{}, TokenDecoder::Fuse{}};
    if (from_.prepends_space) steps.emplace_back(TokenDecoder::Strip{" ", 1, 0});
    return TokenDecoder(std::move(steps));
}

}  // namespace

BpeTokenizer tokenizer_of(const ScoredPieces& pieces) {
    return BpeTokenizer(Sorter(pieces).parts());
}

}  // namespace aerie
