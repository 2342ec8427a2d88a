// Walks a SentencePiece model's protobuf. Stricter than protobuf: known fields must have their type
// and, unless repeated, come once.
#include <array>
#include <cstdint>
#include <cstring>
#include <optional>

#include "core/error.h"
#include "text/scored_pieces.h"

namespace aerie {
namespace {

constexpr size_t kMaxModelBytes = 16 << 20;

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

class ProtobufReader {
  public:
    explicit ProtobufReader(const std::string& file) { pieces_.file = file; }

    ScoredPieces read(std::string_view bytes);

  private:
    [[noreturn]] void fail(const std::string& why) const { throw Error(pieces_.file + ": " + why); }
    // Throws Error unless the field has this type and was not in `seen`, a set of field numbers.
    void expect(const Field& field, Wire wire, uint64_t& seen) const;

    ScoredPiece read_piece(std::string_view bytes) const;
    void read_trainer(std::string_view bytes);
    void read_normalizer(std::string_view bytes);
    void refuse_map(std::string_view bytes) const;  // throws Error for a precompiled one
    void check_ids() const;
    int id_of(std::string_view text) const;

    ScoredPieces pieces_;
    std::string bos_ = "<s>", eos_ = "</s>";  // the library finds them by these texts
    std::array<int64_t, 4> special_ids_ = {-1, -1, -1, -1};  // unk, bos, eos, pad; -1: not given
};

void ProtobufReader::expect(const Field& field, Wire wire, uint64_t& seen) const {
    if (field.wire != wire || (field.number < 64 && (seen >> field.number & 1))) {
        fail("field " + std::to_string(field.number) + " of the model is malformed");
    }
    if (field.number < 64) seen |= uint64_t(1) << field.number;
}

ScoredPiece ProtobufReader::read_piece(std::string_view bytes) const {
    constexpr uint32_t kText = 1, kScore = 2, kType = 3;
    ScoredPiece piece;
    uint64_t seen = 0;
    Message message(bytes, pieces_.file);
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

void ProtobufReader::read_trainer(std::string_view bytes) {
    constexpr uint32_t kModelType = 3, kSpaceAsSuffix = 24, kByteFallback = 35, kFirstId = 40,
                       kBosPiece = 46, kEosPiece = 47;
    constexpr uint64_t kBpe = 2;
    uint64_t seen = 0;
    bool is_bpe = false;
    Message message(bytes, pieces_.file);
    while (const std::optional<Field> field = message.next()) {
        if (field->number == kModelType) {
            expect(*field, Wire::varint, seen);
            is_bpe = field->integer == kBpe;
        } else if (field->number == kSpaceAsSuffix) {
            expect(*field, Wire::varint, seen);
            if (field->integer != 0) fail("spaces as suffixes are not supported");
        } else if (field->number == kByteFallback) {
            expect(*field, Wire::varint, seen);
            pieces_.byte_fallback = field->integer != 0;
        } else if (field->number == kBosPiece || field->number == kEosPiece) {
            expect(*field, Wire::bytes, seen);
            (field->number == kBosPiece ? bos_ : eos_) = field->bytes;
        } else if (field->number >= kFirstId && field->number < kFirstId + special_ids_.size()) {
            expect(*field, Wire::varint, seen);
            special_ids_[field->number - kFirstId] = int64_t(field->integer);
        }
    }
    if (!is_bpe) fail("no BPE model; others are not supported");
}

void ProtobufReader::refuse_map(std::string_view bytes) const {
    constexpr uint32_t kMap = 2;
    uint64_t seen = 0;
    Message message(bytes, pieces_.file);
    while (const std::optional<Field> field = message.next()) {
        if (field->number != kMap) continue;
        expect(*field, Wire::bytes, seen);
        if (!field->bytes.empty()) fail("a normalisation map is not supported");
    }
}

void ProtobufReader::read_normalizer(std::string_view bytes) {
    constexpr uint32_t kPrepends = 3, kRemoves = 4, kEscapes = 5;
    refuse_map(bytes);
    uint64_t seen = 0;
    Message message(bytes, pieces_.file);
    while (const std::optional<Field> field = message.next()) {
        if (field->number < kPrepends || field->number > kEscapes) continue;
        expect(*field, Wire::varint, seen);
        bool& flag = field->number == kPrepends  ? pieces_.prepends_space
                     : field->number == kRemoves ? pieces_.removes_spaces
                                                 : pieces_.escapes_spaces;
        flag = field->integer != 0;
    }
}

void ProtobufReader::check_ids() const {
    for (const int64_t id : special_ids_) {
        if (id < -1 || id >= int64_t(pieces_.pieces.size())) {
            fail("special id " + std::to_string(id) + " outside the " +
                 std::to_string(pieces_.pieces.size()) + " pieces");
        }
    }
}

int ProtobufReader::id_of(std::string_view text) const {
    for (size_t id = 0; id < pieces_.pieces.size(); ++id) {
        if (pieces_.pieces[id].text == text) return int(id);
    }
    return -1;
}

ScoredPieces ProtobufReader::read(std::string_view bytes) {
    constexpr uint32_t kPiece = 1, kTrainer = 2, kNormalizer = 3, kDenormalizer = 5;
    if (bytes.size() > kMaxModelBytes) fail("larger than 16 MB");
    pieces_.removes_spaces = true;
    uint64_t seen = 0;
    Message message(bytes, pieces_.file);
    while (const std::optional<Field> field = message.next()) {
        if (field->number < kPiece || field->number > kDenormalizer) continue;
        uint64_t nothing = 0;
        expect(*field, Wire::bytes, field->number == kPiece ? nothing : seen);
        if (field->number == kPiece) pieces_.pieces.push_back(read_piece(field->bytes));
        if (field->number == kTrainer) read_trainer(field->bytes);
        if (field->number == kNormalizer) read_normalizer(field->bytes);
        if (field->number == kDenormalizer) refuse_map(field->bytes);
    }
    check_ids();
    pieces_.bos = id_of(bos_);
    pieces_.eos = id_of(eos_);
    return std::move(pieces_);
}

}  // namespace

ScoredPieces read_sentencepiece(std::string_view model, const std::string& file) {
    return ProtobufReader(file).read(model);
}

}  // namespace aerie
