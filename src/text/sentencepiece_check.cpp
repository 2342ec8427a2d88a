// Walks a SentencePiece model's protobuf and refuses what libsentencepiece (0.1.97) would abort on,
// read out of bounds for, or take on trust. Stricter than protobuf: known fields must have their
// type and, unless repeated, come once.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>
#include <unordered_set>
#include <vector>

#include "core/error.h"
#include "core/utf8.h"
#include "text/tokenizer.h"

namespace aerie {
namespace {

constexpr size_t kMaxModelBytes = 16 << 20;
constexpr size_t kMaxPieces = 500'000;
constexpr size_t kMaxPieceBytes = 1024;
constexpr size_t kMaxSelfTestBytes = 64 << 10;
// The library collects the user-defined symbols that start a text in an array of 64, unchecked.
constexpr size_t kMaxNestedSymbols = 60;

enum class Wire : uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

struct Field {
    uint32_t number = 0;
    Wire wire = Wire::varint;
    uint64_t integer = 0;    // varint, fixed64, fixed32
    std::string_view bytes;  // bytes
};

// The fields of one message, in file order.
class Message {
  public:
    Message(std::string_view bytes, const std::string& file) : rest_(bytes), file_(file) {}

    std::optional<Field> next() {
        if (rest_.empty()) return std::nullopt;
        const uint64_t tag = varint();
        if (tag > UINT32_MAX || tag < 8) fail();
        Field field{uint32_t(tag >> 3), Wire(tag & 7), 0, {}};
        switch (field.wire) {
            case Wire::varint:
                field.integer = varint();
                break;
            case Wire::fixed64:
                field.integer = fixed(8);
                break;
            case Wire::fixed32:
                field.integer = fixed(4);
                break;
            case Wire::bytes:
                field.bytes = take(varint());
                break;
            default:
                fail();
        }
        return field;
    }

  private:
    [[noreturn]] void fail() const { throw Error(file_ + ": not a SentencePiece model"); }

    std::string_view take(uint64_t count) {
        if (count > rest_.size()) fail();
        const std::string_view bytes = rest_.substr(0, count);
        rest_.remove_prefix(count);
        return bytes;
    }

    uint64_t fixed(size_t count) {
        uint64_t value = 0;
        const std::string_view bytes = take(count);
        for (size_t i = 0; i < count; ++i) value |= uint64_t(uint8_t(bytes[i])) << (8 * i);
        return value;
    }

    uint64_t varint() {
        uint64_t value = 0;
        for (int shift = 0; shift < 64; shift += 7) {
            const uint8_t byte = uint8_t(take(1)[0]);
            if (shift == 63 && byte > 1) fail();
            value |= uint64_t(byte & 0x7F) << shift;
            if (byte < 0x80) return value;
        }
        fail();
    }

    std::string_view rest_;
    const std::string& file_;
};

enum class PieceType : uint8_t {
    normal = 1,
    unknown = 2,
    control = 3,
    user_defined = 4,
    unused = 5,
    byte = 6
};

struct Piece {
    std::string_view text;
    float score = 0;
    PieceType type = PieceType::normal;
};

class Checker {
  public:
    explicit Checker(const std::string& file) : file_(file) {}

    void check_model(std::string_view bytes);

  private:
    [[noreturn]] void fail(const std::string& why) const { throw Error(file_ + ": " + why); }
    // Throws Error unless the field has this type and was not in `seen`, a set of field numbers.
    void expect(const Field& field, Wire wire, uint64_t& seen) const;

    Piece parse_piece(std::string_view bytes) const;
    void check_piece(const Piece& piece);
    void check_byte_piece(std::string_view text);
    void check_trainer(std::string_view bytes);
    void check_normalizer(std::string_view bytes) const;
    void check_ids() const;
    void check_nesting() const;

    const std::string& file_;
    std::unordered_set<std::string_view> texts_;
    std::vector<std::string_view> symbols_;  // user-defined pieces
    size_t bytes_found_ = 0;
    size_t unknowns_ = 0;
    bool byte_fallback_ = false;
    std::array<int64_t, 4> special_ids_ = {0, 1, 2, -1};  // unk, bos, eos, pad
};

void Checker::expect(const Field& field, Wire wire, uint64_t& seen) const {
    if (field.wire != wire || (field.number < 64 && (seen >> field.number & 1))) {
        fail("field " + std::to_string(field.number) + " of the model is malformed");
    }
    if (field.number < 64) seen |= uint64_t(1) << field.number;
}

Piece Checker::parse_piece(std::string_view bytes) const {
    constexpr uint32_t kText = 1, kScore = 2, kType = 3;
    Piece piece;
    uint64_t seen = 0;
    Message message(bytes, file_);
    while (const std::optional<Field> field = message.next()) {
        if (field->number == kText) {
            expect(*field, Wire::bytes, seen);
            piece.text = field->bytes;
        } else if (field->number == kScore) {
            expect(*field, Wire::fixed32, seen);
            const uint32_t bits = uint32_t(field->integer);
            std::memcpy(&piece.score, &bits, sizeof(bits));
        } else if (field->number == kType) {
            expect(*field, Wire::varint, seen);
            if (field->integer < 1 || field->integer > 6) fail("piece of an unknown type");
            piece.type = PieceType(field->integer);
        }
    }
    return piece;
}

void Checker::check_piece(const Piece& piece) {
    const std::string shown = "piece " + in_quotes(piece.text);
    if (texts_.size() == kMaxPieces) fail("more than " + std::to_string(kMaxPieces) + " pieces");
    if (piece.text.empty()) fail("empty piece");
    if (piece.text.size() > kMaxPieceBytes) fail(shown + " is too long");
    if (!is_utf8(piece.text) || piece.text.find('\0') != std::string_view::npos) {
        fail(shown + " is no UTF-8 text");
    }
    if (!texts_.insert(piece.text).second) fail(shown + " is there twice");
    if (!std::isfinite(piece.score)) fail(shown + " has no finite score");
    if (piece.type == PieceType::unknown) ++unknowns_;
    if (piece.type == PieceType::user_defined) symbols_.push_back(piece.text);
    if (piece.type == PieceType::byte) check_byte_piece(piece.text);
}

// "<0xAB>", upper case.
void Checker::check_byte_piece(std::string_view text) {
    constexpr std::string_view kDigits = "0123456789ABCDEF";
    const bool framed = text.size() == 6 && text.starts_with("<0x") && text.ends_with(">");
    const size_t high = framed ? kDigits.find(text[3]) : std::string_view::npos;
    const size_t low = framed ? kDigits.find(text[4]) : std::string_view::npos;
    if (high == std::string_view::npos || low == std::string_view::npos) {
        fail("byte piece " + in_quotes(text) + ", expected one like '<0x0A>'");
    }
    ++bytes_found_;  // no piece comes twice, so 256 of them are all
}

void Checker::check_trainer(std::string_view bytes) {
    constexpr uint32_t kModelType = 3, kSpaceAsSuffix = 24, kByteFallback = 35, kFirstId = 40;
    uint64_t seen = 0;
    Message message(bytes, file_);
    while (const std::optional<Field> field = message.next()) {
        if (field->number == kModelType) {
            expect(*field, Wire::varint, seen);
            if (field->integer != 1 && field->integer != 2) {
                fail("neither a unigram nor a BPE model");
            }
        } else if (field->number == kSpaceAsSuffix) {
            expect(*field, Wire::varint, seen);
            if (field->integer != 0) fail("spaces as suffixes are not supported");
        } else if (field->number == kByteFallback) {
            expect(*field, Wire::varint, seen);
            byte_fallback_ = field->integer != 0;
        } else if (field->number >= kFirstId && field->number < kFirstId + special_ids_.size()) {
            expect(*field, Wire::varint, seen);
            special_ids_[field->number - kFirstId] = int64_t(field->integer);
        }
    }
}

// Of the normaliser or the denormaliser.
void Checker::check_normalizer(std::string_view bytes) const {
    constexpr uint32_t kMap = 2;
    uint64_t seen = 0;
    Message message(bytes, file_);
    while (const std::optional<Field> field = message.next()) {
        if (field->number != kMap) continue;
        expect(*field, Wire::bytes, seen);
        if (!field->bytes.empty()) fail("a normalisation map is not supported");
    }
}

void Checker::check_ids() const {
    for (const int64_t id : special_ids_) {
        if (id < -1 || id >= int64_t(texts_.size())) {
            fail("special id " + std::to_string(id) + " outside the " +
                 std::to_string(texts_.size()) + " pieces");
        }
    }
}

void Checker::check_nesting() const {
    std::vector<std::string_view> sorted = symbols_;
    std::sort(sorted.begin(), sorted.end());
    std::vector<std::string_view> prefixes;  // of the symbol at hand, each one of the next
    for (const std::string_view symbol : sorted) {
        while (!prefixes.empty() && !symbol.starts_with(prefixes.back())) prefixes.pop_back();
        prefixes.push_back(symbol);
        if (prefixes.size() > kMaxNestedSymbols) fail("too many nested user-defined pieces");
    }
}

void Checker::check_model(std::string_view bytes) {
    constexpr uint32_t kPiece = 1, kTrainer = 2, kNormalizer = 3, kSelfTest = 4, kDenormalizer = 5;
    if (bytes.size() > kMaxModelBytes) fail("larger than 16 MB");
    uint64_t seen = 0;
    Message message(bytes, file_);
    while (const std::optional<Field> field = message.next()) {
        if (field->number < kPiece || field->number > kDenormalizer) continue;
        uint64_t nothing = 0;
        expect(*field, Wire::bytes, field->number == kPiece ? nothing : seen);
        if (field->number == kPiece) check_piece(parse_piece(field->bytes));
        if (field->number == kTrainer) check_trainer(field->bytes);
        if (field->number == kNormalizer || field->number == kDenormalizer) {
            check_normalizer(field->bytes);
        }
        if (field->number == kSelfTest && field->bytes.size() > kMaxSelfTestBytes) {
            fail("self-test data of more than 64 KB");
        }
    }
    if (texts_.empty()) fail("no pieces");
    if (unknowns_ != 1) fail(std::to_string(unknowns_) + " unknown pieces, expected one");
    if (bytes_found_ != (byte_fallback_ ? 256 : 0)) {
        fail(std::to_string(bytes_found_) + " byte pieces, expected " +
             (byte_fallback_ ? "256" : "none without byte fallback"));
    }
    check_ids();
    check_nesting();
}

}  // namespace

void check_sentencepiece_model(std::string_view bytes, const std::string& file) {
    Checker(file).check_model(bytes);
}

}  // namespace aerie
