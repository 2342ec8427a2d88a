// The stamps of the files are compared before and after reading. It is an error if a file was
// written to meanwhile. The hash of a file that was written to just now is not cached, because its
// time might not change with the next write.
#include "talk/weights_hash.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "core/error.h"
#include "core/hash.h"
#include "core/replaced_file.h"

namespace aerie {

namespace fs = std::filesystem;

namespace {

constexpr size_t kDigits = 32;

void check_unchanged(const ModelSource& source) {
    for (const InputFile* file : source.tensors.files())
        if (file->stamp() != file->first_stamp())
            throw Error(file->path().string() +
                        ": has changed since it was loaded; load the model again");
}

// The hash of a tensor's bytes, read in whole rows.
std::string tensor_hash(const Checkpoint& tensors, const NamedTensor& tensor) {
    constexpr size_t kPieceBytes = 1 << 20;
    const DType type = tensor.file_type.value_or(tensor.dtype);
    const size_t all = elements_in(tensor.dtype, tensor.data.size_bytes);
    const size_t row = tensor.shape.empty() ? 1 : size_t(tensor.shape.back());
    LongHash hash;
    std::vector<std::byte> piece;
    if (all > 0) {
        const size_t rows = std::max<size_t>(1, kPieceBytes / size_bytes(type, row));
        for (size_t first = 0, count; first < all; first += count) {
            count = std::min(rows * row, all - first);
            piece.resize(size_bytes(type, count));
            tensors.read(tensor, type, first, piece);
            hash.add(piece);
        }
    }
    return tensor.name + " " + name(type) + tensor.shape_text() + " " + hash.digest();
}

std::string hash_of(const Checkpoint& tensors) {
    LongHash hash;
    for (const auto& [name, tensor] : tensors.tensors()) {
        const std::string line = tensor_hash(tensors, tensor) + "\n";
        hash.add(std::as_bytes(std::span(line)));
    }
    return hash.digest();
}

// One line with everything that the cached hash depends on; empty if the tensors are not in files.
std::string cache_key(const ModelSource& source) {
    std::string key;
    for (const InputFile* file : source.tensors.files()) {
        const platform::FileStamp& stamp = file->first_stamp();
        key += " " + hex_digits(fnv1a(fs::absolute(file->path()).string()));
        for (const uint64_t part :
             {stamp.size_bytes, uint64_t(stamp.modified), stamp.device, stamp.number})
            key += " " + std::to_string(part);
    }
    // The types are those in the files, whatever a device stores.
    return key.empty() ? key : "aerie weights 1" + key;
}

fs::path cache_file(const ModelSource& source, const fs::path& cache) {
    return cache / ("weights-" + hex_digits(fnv1a(fs::absolute(source.path).string())) + ".txt");
}

std::optional<std::string> cached_hash(const fs::path& file, const std::string& key) {
    constexpr size_t kMaxBytes = 1 << 20;
    try {
        std::string text = read_text(file, kMaxBytes);
        if (text.size() != key.size() + kDigits + 2 || !text.starts_with(key + "\n"))
            return std::nullopt;
        text = text.substr(key.size() + 1, kDigits);
        if (text.find_first_not_of("0123456789abcdef") != text.npos) return std::nullopt;
        return text;
    } catch (const Error&) {
        return std::nullopt;
    }
}

bool is_settled(const ModelSource& source) {
    using namespace std::chrono;
    constexpr int64_t kSettled = 2'000'000'000;  // nanoseconds; file systems have finer times
    const int64_t now = duration_cast<nanoseconds>(system_clock::now().time_since_epoch()).count();
    const std::vector<const InputFile*> files = source.tensors.files();
    return std::all_of(files.begin(), files.end(), [&](const InputFile* file) {
        return now - file->first_stamp().modified > kSettled;
    });
}

// Without a cache only time is lost.
void keep_hash(const fs::path& file, const std::string& text) {
    try {
        fs::create_directories(file.parent_path());
        ReplacedFile(file).commit(text);
    } catch (const Error&) {
    } catch (const fs::filesystem_error&) {
    }
}

}  // namespace

std::string weights_hash(const ModelSource& source, const fs::path& cache) {
    check_unchanged(source);
    const std::string key = cache.empty() ? "" : cache_key(source);
    if (!key.empty())
        if (const auto known = cached_hash(cache_file(source, cache), key)) return *known;
    const std::string hash = hash_of(source.tensors);
    check_unchanged(source);
    if (!key.empty() && is_settled(source))
        keep_hash(cache_file(source, cache), key + "\n" + hash + "\n");
    return hash;
}

}  // namespace aerie
