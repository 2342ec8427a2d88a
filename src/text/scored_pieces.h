// Vocabularies of SentencePiece's BPE: pieces with scores, as a tokenizer.model or a GGUF file has
// them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/bpe_tokenizer.h"

namespace aerie {

// Types of pieces, by their numbers in files.
enum class PieceType { normal = 1, unknown, control, user_defined, unused, byte };

struct ScoredPiece {
    std::string_view text;  // U+2581 is a space
    float score = 0;        // finite
    PieceType type = PieceType::normal;
};

struct ScoredPieces {
    std::string file;                        // as errors name it
    std::vector<ScoredPiece> pieces;         // by id
    bool byte_fallback = false;              // with all 256 byte pieces
    bool prepends_space = true;              // in front of every text
    bool removes_spaces = false;             // at the ends of a text, and all but one of several
    bool escapes_spaces = true;              // as U+2581
    int bos = -1, eos = -1;                  // -1: none
    bool adds_bos = true, adds_eos = false;  // around a text, if the tokens exist
};

// Control pieces and the unknown one become special tokens, user-defined ones added tokens. Throws
// Error naming the file if there is not exactly one unknown piece, if a piece is not UTF-8, is
// there twice, is too long or has no finite score, or if byte pieces are malformed or incomplete.
BpeTokenizer tokenizer_of(const ScoredPieces& pieces);

// Reads a SentencePiece model (tokenizer.model); the texts point into `model`. Throws Error naming
// `file` for malformed protobuf, unigram models, normalisation maps and spaces as suffixes.
ScoredPieces read_sentencepiece(std::string_view model, const std::string& file);

}  // namespace aerie
