// Finds the weight files of a model folder and puts their tensors into one map.
#include "io/checkpoint.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <set>

#include "core/error.h"
#include "core/utf8.h"
#include "io/json.h"
#include "io/safetensors.h"
#include "io/tensor_limit.h"
#include "io/torch/torch_bin.h"

namespace aerie {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxIndexBytes = 16 << 20;

struct WeightFormat {
    const char* file;
    const char* index;
    std::vector<NamedTensor> (*read)(const ByteSource&, const std::string&);
};

constexpr std::array<WeightFormat, 5> kFormats{
    {{"model.safetensors", "model.safetensors.index.json", read_safetensors},
     {"pytorch_model.bin", "pytorch_model.bin.index.json", read_torch_bin},
     {"medusa_lm_head.safetensors", "medusa_lm_head.safetensors.index.json", read_safetensors},
     {"medusa_lm_head.pt", "medusa_lm_head.pt.index.json", read_torch_bin},
     {"hydra_lm_head.pt", "hydra_lm_head.pt.index.json", read_torch_bin}}};

// weight_map of an index file: tensor name -> shard name.
std::map<std::string, std::string> read_index(const fs::path& folder, const std::string& name) {
    const std::string file = (folder / name).string();
    const std::string text = read_text(file_in_folder(folder, name), kMaxIndexBytes);
    const Json index = Json::parse(text, file);
    const Json* weights = index.find("weight_map");
    if (!weights || !weights->object() || weights->object()->empty()) {
        throw Error(file + ": no weight_map, or an empty one");
    }
    if (weights->object()->size() > kMaxTensors) {
        throw Error(file + ": more than " + std::to_string(kMaxTensors) + " tensors");
    }
    std::map<std::string, std::string> shard_of;
    for (const auto& [tensor, shard] : *weights->object()) {
        if (!shard.string())
            throw Error(file + ": shard of " + in_quotes(tensor) + " is no string");
        shard_of.emplace(tensor, *shard.string());
    }
    return shard_of;
}

}  // namespace

Checkpoint Checkpoint::open(const fs::path& folder) {
    Checkpoint checkpoint;
    checkpoint.folder_ = folder;
    for (const WeightFormat& format : kFormats) {
        if (is_in_folder(folder, format.file)) {
            for (NamedTensor& tensor : checkpoint.read_file(format.file, format.read)) {
                checkpoint.add(std::move(tensor));
            }
            return checkpoint;
        }
        if (is_in_folder(folder, format.index)) {
            checkpoint.read_shards(format.index, format.read);
            return checkpoint;
        }
    }
    throw Error(folder.string() + ": no model.safetensors or pytorch_model.bin", Cause::not_found);
}

bool Checkpoint::is_in(const fs::path& folder) {
    return std::any_of(kFormats.begin(), kFormats.end(), [&](const WeightFormat& format) {
        return is_in_folder(folder, format.file) || is_in_folder(folder, format.index);
    });
}

Checkpoint Checkpoint::generated(const std::string& name, std::vector<NamedTensor> tensors,
                                 Fill fill, FileTypes types, std::vector<const InputFile*> files,
                                 NameInFile name_in_file) {
    Checkpoint checkpoint;
    checkpoint.folder_ = name;
    checkpoint.fill_ = std::move(fill);
    checkpoint.file_types_ = std::move(types);
    checkpoint.made_of_ = std::move(files);
    checkpoint.name_in_file_ = std::move(name_in_file);
    for (NamedTensor& tensor : tensors) checkpoint.add(std::move(tensor));
    return checkpoint;
}

std::vector<NamedTensor> Checkpoint::read_file(const std::string& name, Reader* read) {
    files_.push_back({name, std::make_unique<InputFile>(file_in_folder(folder_, name))});
    return read(*files_.back().bytes, (folder_ / name).string());
}

void Checkpoint::read_shards(const std::string& index, Reader* read) {
    const std::map<std::string, std::string> shard_of = read_index(folder_, index);
    std::set<std::string> shards;
    for (const auto& [tensor, shard] : shard_of) shards.insert(shard);
    std::set<std::string> seen;
    for (const std::string& shard : shards) {
        for (NamedTensor& tensor : read_file(shard, read)) {
            if (!seen.insert(tensor.name).second) {
                throw Error((folder_ / shard).string() + ": tensor " + in_quotes(tensor.name) +
                            " is in two shards");
            }
            const auto entry = shard_of.find(tensor.name);
            if (entry != shard_of.end() && entry->second == shard) add(std::move(tensor));
        }
    }
    for (const auto& [tensor, shard] : shard_of) {
        if (!find(tensor)) {
            throw Error((folder_ / index).string() + ": tensor " + in_quotes(tensor) +
                        " is not in " + in_quotes(shard));
        }
    }
}

void Checkpoint::add(NamedTensor tensor) {
    if (!files_.empty()) file_of_.emplace(tensor.name, files_.size() - 1);
    std::string name = tensor.name;
    tensors_.emplace(std::move(name), std::move(tensor));
}

void Checkpoint::replace_unstorable(const std::function<bool(DType)>& can_store) {
    for (auto& [name, tensor] : tensors_) {
        if (!is_quantised(tensor.dtype) || can_store(tensor.dtype)) continue;
        tensor.file_type = tensor.dtype;
        const size_t elements = elements_in(tensor.dtype, tensor.data.size_bytes);
        tensor.dtype = DType::Q8_0;
        tensor.data.size_bytes = aerie::size_bytes(DType::Q8_0, elements);
    }
}

bool Checkpoint::rename(const std::string& from, const std::string& to) {
    if (fill_ || !tensors_.contains(from) || tensors_.contains(to)) return false;
    auto tensor = tensors_.extract(from);
    tensor.key() = tensor.mapped().name = to;
    tensors_.insert(std::move(tensor));
    auto file = file_of_.extract(from);
    file.key() = to;
    file_of_.insert(std::move(file));
    return true;
}

const NamedTensor* Checkpoint::find(const std::string& name) const {
    const auto found = tensors_.find(name);
    return found == tensors_.end() ? nullptr : &found->second;
}

const NamedTensor& Checkpoint::get(const std::string& name, std::span<const int64_t> shape) const {
    const NamedTensor* tensor = find(name);
    if (!tensor) {
        throw Error(folder_.string() + ": no tensor " + shown(name) + " of shape " +
                    shape_text(shape));
    }
    const std::string what = describe(*tensor);
    if (!std::equal(shape.begin(), shape.end(), tensor->shape.begin(), tensor->shape.end())) {
        throw Error(what + " has shape " + tensor->shape_text() + ", expected " +
                    shape_text(shape));
    }
    if (!is_float(tensor->dtype) && !is_quantised(tensor->dtype)) {
        throw Error(what + " is " + aerie::name(tensor->dtype) + ", expected f32, f16 or bf16");
    }
    return *tensor;
}

std::string Checkpoint::describe(const NamedTensor& tensor) const {
    const auto file = file_of_.find(tensor.name);
    const fs::path path = file == file_of_.end() ? folder_ : folder_ / files_[file->second].name;
    return path.string() + ": tensor " + shown(tensor.name);
}

std::string Checkpoint::shown(const std::string& name) const {
    const std::string there = name_in_file_ ? name_in_file_(name) : "";
    return in_quotes(there.empty() ? name : there);
}

const InputFile& Checkpoint::file_of(const NamedTensor& tensor) const {
    return *files_[file_of_.at(tensor.name)].bytes;
}

void Checkpoint::spread_rows(const std::string& name, const SpreadRows& rows) {
    NamedTensor& tensor = tensors_.at(name);
    assert(!is_spread(name) && tensor.shape.at(0) % rows.from == 0 && rows.from <= rows.to);
    if (file_types_.empty()) file_types_ = file_types();  // before the zeros, which are in no file
    const size_t bytes = tensor.data.size_bytes / size_t(tensor.shape[0]);
    tensor.shape[0] = tensor.shape[0] / rows.from * rows.to;
    tensor.data.size_bytes = bytes * size_t(tensor.shape[0]);
    spread_[name] = rows;
}

// Reads whole rows; the rows of a vector are its elements. Zero bytes are zeros in every type.
void Checkpoint::read_spread(const NamedTensor& tensor, const SpreadRows& rows, DType as,
                             size_t first, std::span<std::byte> out) const {
    size_t columns = 1;
    for (size_t i = 1; i < tensor.shape.size(); ++i) columns *= size_t(tensor.shape[i]);
    const size_t row_bytes = aerie::size_bytes(as, columns);
    const size_t parts = rows.by_halves ? 2 : 1;
    const size_t from = size_t(rows.from) / parts, to = size_t(rows.to) / parts;
    for (size_t row = first / columns; !out.empty();) {
        const size_t in_part = row % to, left = out.size() / row_bytes;
        const bool is_there = in_part < from;
        const size_t count = std::min((is_there ? from : to) - in_part, left);
        const std::span<std::byte> here = out.first(count * row_bytes);
        if (is_there)
            read_stored(tensor, as, (row / to * from + in_part) * columns, here);
        else
            std::fill(here.begin(), here.end(), std::byte(0));
        out = out.subspan(here.size());
        row += count;
    }
}

void Checkpoint::read(const NamedTensor& tensor, DType as, size_t first,
                      std::span<std::byte> out) const {
    if (const auto spread = spread_.find(tensor.name); spread != spread_.end())
        return read_spread(tensor, spread->second, as, first, out);
    read_stored(tensor, as, first, out);
}

void Checkpoint::read_stored(const NamedTensor& tensor, DType as, size_t first,
                             std::span<std::byte> out) const {
    assert(as == tensor.dtype ||
           (is_quantised(tensor.dtype) &&
            (as == DType::F32 || as == DType::Q8_0 || as == tensor.file_type)));
    if (fill_) return fill_(tensor, as, first, out);
    const size_t from = aerie::size_bytes(tensor.dtype, first);
    assert(as == tensor.dtype && from + out.size() <= tensor.data.size_bytes);
    file_of(tensor).read(tensor.data.begin + from, out);
}

std::unique_ptr<std::byte[]> Checkpoint::read(const NamedTensor& tensor) const {
    check(tensor);
    auto data = std::make_unique_for_overwrite<std::byte[]>(tensor.data.size_bytes);
    read(tensor, tensor.dtype, 0, {data.get(), tensor.data.size_bytes});
    return data;
}

void Checkpoint::check(const NamedTensor& tensor) const {
    if (!fill_) check_tensor(file_of(tensor), tensor, describe(tensor));
}

FileTypes Checkpoint::file_types() const {
    if (!file_types_.empty()) return file_types_;
    FileTypes types;
    for (const auto& [name, tensor] : tensors_)
        types[aerie::name(tensor.dtype)] += tensor.data.size_bytes;
    return types;
}

std::string Checkpoint::type_names() const {
    std::string names;
    for (const auto& [name, bytes] : file_types()) names += (names.empty() ? "" : ", ") + name;
    return names;
}

size_t Checkpoint::parameters() const {
    size_t count = 0;
    for (const auto& [name, tensor] : tensors_)
        count += elements_in(tensor.dtype, tensor.data.size_bytes);
    return count;
}

std::vector<const InputFile*> Checkpoint::files() const {
    std::vector<const InputFile*> files = made_of_;
    for (const File& file : files_) files.push_back(file.bytes.get());
    return files;
}

size_t Checkpoint::size_bytes() const {
    size_t total = 0;
    for (const auto& [name, tensor] : tensors_) total += tensor.data.size_bytes;
    return total;
}

}  // namespace aerie
