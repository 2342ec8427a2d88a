// Vocabularies of SentencePiece's BPE: pieces with scores, as a tokenizer.model or a GGUF file has
// them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/bpe_tokenizer.h"

namespace aerie {

// By the numbers that stand in files.
enum class PieceType { normal = 1, unknown, control, user_defined, unused, byte };

struct ScoredPiece {
    std::string_view text;  // U+2581 is a space
    float score = 0;        // finite
    PieceType type = PieceType::normal;
};

struct ScoredPieces {
    std::string file;                        // names them in errors
    std::vector<ScoredPiece> pieces;         // by id
    bool byte_fallback = false;              // with all 256 byte pieces
    bool prepends_space = true;              // to every text
    bool removes_spaces = false;             // at the ends of a text, and of several all but one
    bool escapes_spaces = true;              // as U+2581
    int bos = -1, eos = -1;                  // -1: none
    bool adds_bos = true, adds_eos = false;  // around a text, where there are such tokens
};

// Control pieces and the unknown one are special tokens; user-defined ones are added tokens.
// Throws Error naming the file: not one unknown piece, a piece that is no UTF-8, twice there, too
// long or without a finite score, byte pieces that are none or not all there.
BpeTokenizer tokenizer_of(const ScoredPieces& pieces);

// What a SentencePiece model (tokenizer.model) has; the texts are in `model`. Throws Error naming
// `file` for malformed protobuf, unigram models, normalisation maps and spaces as suffixes.
ScoredPieces read_sentencepiece(std::string_view model, const std::string& file);

}  // namespace aerie
