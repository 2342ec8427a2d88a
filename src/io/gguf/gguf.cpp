// Puts the pieces of a GGUF model together, and reads and decodes their tensors.
#include "io/gguf/gguf.h"

#include <algorithm>
#include <optional>

#include "core/error.h"
#include "core/utf8.h"

namespace aerie {
namespace {

namespace fs = std::filesystem;

constexpr size_t kDigits = 5;
constexpr int64_t kMaxPieces = 512;
constexpr const char *kSplitNo = "split.no", *kSplitCount = "split.count",
                     *kSplitTensors = "split.tensors.count";

std::optional<int64_t> five_digits(std::string_view text) {
    int64_t number = 0;
    if (text.size() != kDigits) return std::nullopt;
    for (const char c : text) {
        if (c < '0' || c > '9') return std::nullopt;
        number = 10 * number + (c - '0');
    }
    return number;
}

std::string as_digits(int64_t number) {
    const std::string text = std::to_string(number);
    return std::string(kDigits - std::min(kDigits, text.size()), '0') + text;
}

// A file name that ends as a piece's does: -00002-of-00003.gguf.
struct PieceName {
    std::string stem;
    int64_t number = 1, count = 1;

    std::string of(int64_t piece) const {
        return stem + "-" + as_digits(piece) + "-of-" + as_digits(count) + ".gguf";
    }
};

// nullopt: the name is not that of a piece.
std::optional<PieceName> parse_piece_name(const std::string& name) {
    constexpr std::string_view kOf = "-of-", kEnd = ".gguf";
    constexpr size_t kTail = 1 + kDigits + kOf.size() + kDigits + kEnd.size();
    if (name.size() < kTail) return std::nullopt;
    const std::string_view tail = std::string_view(name).substr(name.size() - kTail);
    const std::optional<int64_t> number = five_digits(tail.substr(1, kDigits));
    const std::optional<int64_t> count =
        five_digits(tail.substr(1 + kDigits + kOf.size(), kDigits));
    if (tail[0] != '-' || tail.substr(1 + kDigits, kOf.size()) != kOf || !tail.ends_with(kEnd) ||
        !number || !count)
        return std::nullopt;
    return PieceName{name.substr(0, name.size() - kTail), *number, *count};
}

void check_equal(const GgufMetadata& metadata, const char* key, int64_t expected) {
    const int64_t found = metadata.integer(key);
    if (found != expected) {
        throw Error(metadata.file() + ": " + key + " is " + std::to_string(found) + ", expected " +
                    std::to_string(expected));
    }
}

// A file that is alone has no split keys, or says that it is the only piece.
void check_alone(const GgufMetadata& metadata) {
    if (!metadata.find(kSplitCount)) return;
    const int64_t count = metadata.integer(kSplitCount);
    if (count == 0 || count == 1) return;
    throw Error(metadata.file() + ": is one of " + std::to_string(count) +
                " pieces, and its name does not end as that of a piece does: -00001-of-" +
                as_digits(count) + ".gguf");
}

}  // namespace

Gguf Gguf::open(const fs::path& path) {
    Gguf model;
    const std::optional<PieceName> name = parse_piece_name(path.filename().string());
    if (!name || (name->number == 1 && name->count == 1)) {
        model.metadata_ = model.add_piece(path);
        check_alone(model.metadata_);
        return model;
    }
    if (name->number < 1 || name->number > name->count || name->count > kMaxPieces) {
        throw Error(path.string() + ": piece " + std::to_string(name->number) + " of " +
                    std::to_string(name->count) + ", expected at most " +
                    std::to_string(kMaxPieces) + " pieces counted from 1");
    }
    for (int64_t piece = 1; piece <= name->count; ++piece) {
        GgufMetadata metadata = model.add_piece(path.parent_path() / name->of(piece));
        check_equal(metadata, kSplitCount, name->count);
        check_equal(metadata, kSplitNo, piece - 1);
        if (piece == 1) model.metadata_ = std::move(metadata);
    }
    check_equal(model.metadata_, kSplitTensors, int64_t(model.tensors_.size()));
    return model;
}

GgufMetadata Gguf::add_piece(const fs::path& path) {
    pieces_.push_back({path.string(), std::make_unique<InputFile>(path)});
    const Piece& piece = pieces_.back();
    GgufFile file = read_gguf(*piece.bytes, piece.file);
    for (GgufTensor& tensor : file.tensors) {
        tensor.piece = pieces_.size() - 1;
        if (!index_.emplace(tensor.name, tensors_.size()).second)
            throw Error(describe(tensor) + " is in another piece too");
        tensors_.push_back(std::move(tensor));
    }
    return std::move(file.metadata);
}

const GgufTensor* Gguf::find(const std::string& name) const {
    const auto found = index_.find(name);
    return found == index_.end() ? nullptr : &tensors_[found->second];
}

size_t Gguf::size_bytes() const {
    size_t total = 0;
    for (const GgufTensor& tensor : tensors_) total += tensor.data.size_bytes;
    return total;
}

std::vector<const InputFile*> Gguf::files() const {
    std::vector<const InputFile*> files;
    for (const Piece& piece : pieces_) files.push_back(piece.bytes.get());
    return files;
}

void Gguf::read(const GgufTensor& tensor, size_t from, std::span<std::byte> out) const {
    pieces_[tensor.piece].bytes->read(tensor.data.begin + from, out);
}

void Gguf::read_rows(const GgufTensor& tensor, int64_t first_row, std::span<float> out) const {
    const std::string what = describe(tensor);
    std::vector<std::byte> blocks(checked_bytes(out.size(), tensor.type, what));
    read(tensor, size_t(first_row) * tensor.row_bytes(), blocks);
    decode(tensor.type, blocks, out, what);
}

std::string Gguf::describe(const GgufTensor& tensor) const {
    return pieces_[tensor.piece].file + ": tensor " + in_quotes(tensor.name);
}

}  // namespace aerie
