// A small writer of SentencePiece models (protobuf), right by default and wrong on request.
#pragma once

#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace aerie::test {

enum PieceKind { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };

struct Piece {
    std::string text;
    float score = 0;
    int kind = kNormal;
};

inline std::string varint(uint64_t value) {
    std::string out;
    for (; value >= 0x80; value >>= 7) out += char(value | 0x80);
    return out + char(value);
}
inline std::string varint_field(int number, uint64_t value) {
    return varint(uint64_t(number) << 3) + varint(value);
}
inline std::string bytes_field(int number, std::string_view bytes) {
    return varint(uint64_t(number) << 3 | 2) + varint(bytes.size()) + std::string(bytes);
}
inline std::string float_field(int number, float value) {
    std::string raw(sizeof(value), '\0');
    std::memcpy(raw.data(), &value, sizeof(value));
    return varint(uint64_t(number) << 3 | 5) + raw;
}

inline std::string piece_field(const Piece& piece) {
    return bytes_field(1, bytes_field(1, piece.text) + float_field(2, piece.score) +
                              varint_field(3, uint64_t(piece.kind)));
}

// A BPE model: <unk>, <s>, </s>, with `byte_fallback` the 256 bytes, then `pieces`; the normaliser
// is the identity and keeps spaces. `extra` is appended to the model's message, `trainer` to its
// trainer part.
struct ModelWriter {
    std::vector<Piece> pieces = {};
    bool byte_fallback = true;
    int model_type = 2;
    std::string trainer = {};
    std::string normalizer = varint_field(4, 0);  // remove_extra_whitespaces
    std::string extra = {};

    std::string file() const {
        std::string out = piece_field({"<unk>", 0, kUnknown}) + piece_field({"<s>", 0, kControl}) +
                          piece_field({"</s>", 0, kControl});
        for (int byte = 0; byte_fallback && byte < 256; ++byte) {
            char text[8];
            std::snprintf(text, sizeof(text), "<0x%02X>", unsigned(byte));
            out += piece_field({text, 0, kByte});
        }
        for (const Piece& piece : pieces) out += piece_field(piece);
        out += bytes_field(
            2, varint_field(3, uint64_t(model_type)) + varint_field(35, byte_fallback) + trainer);
        return out + bytes_field(3, normalizer) + extra;
    }
};

}  // namespace aerie::test
