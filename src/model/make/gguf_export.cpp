// Rows are read, converted and reordered while the file is written.
#include "model/make/gguf_export.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "backend/weight_rows.h"
#include "core/error.h"
#include "io/gguf/convert.h"
#include "io/gguf/describe.h"
#include "io/gguf/rotary.h"
#include "model/make/shapes.h"
#include "model/weights.h"

namespace aerie {

namespace {

// general.file_type: the type of most of the matrices.
uint32_t file_type(DType type) {
    switch (type) {
        case DType::F32:
            return 0;
        case DType::F16:
            return 1;
        case DType::Q4_0:
            return 2;
        case DType::Q4_1:
            return 3;
        case DType::Q5_0:
            return 8;
        case DType::Q5_1:
            return 9;
        case DType::Q2_K:
            return 10;
        case DType::Q3_K:
            return 11;
        case DType::Q4_K:
            return 14;
        case DType::Q5_K:
            return 16;
        case DType::Q6_K:
            return 18;
        case DType::IQ4_NL:
            return 25;
        case DType::IQ4_XS:
            return 30;
        case DType::BF16:
            return 32;
        default:
            return 7;
    }
}

// GGUF expresses llama3's scaling by a factor for each frequency.
ModelConfig as_gguf_says(ModelConfig config) {
    if (config.rope.scaling == Rope::Scaling::llama3)
        config.rope = with_factors(config.rope, config.size_of_head());
    return config;
}

}  // namespace

GgufExport::GgufExport(const ModelSource& source, std::optional<DType> weights)
    : checkpoint_(source.tensors),
      config_(as_gguf_says(target_config(source))),
      architecture_(architecture_of(config_json(config_))) {
    refuse_other_weights(config_, checkpoint_);
    for (const TensorShape& wanted : target_tensors(config_)) add(wanted, weights);
    if (!config_.rope.factors.empty()) add_factors();
    describe(source);
}

void GgufExport::add(const TensorShape& wanted, std::optional<DType> weights) {
    const std::optional<GgufPlace> place = gguf_place(architecture_, wanted.name);
    if (!place) throw Error("'" + wanted.name + "' has no name in GGUF");
    const NamedTensor* stacked = wanted.stack.empty() || checkpoint_.find(wanted.name)
                                     ? nullptr
                                     : checkpoint_.find(wanted.stack);
    std::vector<int64_t> shape = wanted.shape;
    if (stacked) shape.insert(shape.begin(), wanted.in_stack);
    const NamedTensor& tensor = checkpoint_.get(stacked ? wanted.stack : wanted.name, shape);
    const bool is_matrix = wanted.shape.size() == 2;
    const int rows = int(wanted.shape[0]), cols = is_matrix ? int(wanted.shape[1]) : 1;
    const DType stored = is_matrix && !wanted.is_router ? stored_type(tensor, weights) : DType::F32;
    weight_bytes(checkpoint_.describe(tensor), rows, cols, stored);
    if (place->expert < 1) {
        std::vector<int64_t> whole = wanted.shape;
        if (place->expert == 0) whole.insert(whole.begin(), wanted.in_stack);
        tensors_.push_back({place->name, ggml_type(stored), whole, {}});
        stacks_.push_back({{}, stored, rows, cols, place->is_rotary});
    }
    const auto found = std::find_if(tensors_.rbegin(), tensors_.rend(),
                                    [&](const GgufTensor& one) { return one.name == place->name; });
    Stack& stack = stacks_[size_t(tensors_.rend() - found) - 1];
    if (stack.stored != stored)
        throw Error(checkpoint_.describe(tensor) +
                    " is stored in another type than the expert before it");
    if (!stacked || place->expert == 0) checkpoint_.check(tensor);
    const size_t first = stacked ? size_t(place->expert) * size_t(rows) * size_t(cols) : 0;
    stack.parts.emplace_back(checkpoint_, tensor, stored, MatrixSlice{first, cols});
}

void GgufExport::add_factors() {
    tensors_.push_back(
        {"rope_freqs.weight", GgmlType::F32, {int64_t(config_.rope.factors.size())}, {}});
    stacks_.push_back({{}, DType::F32, int(config_.rope.factors.size()), 1, false});
}

void GgufExport::describe(const ModelSource& source) {
    constexpr uint32_t kQuantisation = 2;  // version of the blocks that llama.cpp writes today
    const Json config = config_json(config_);
    describe_config(config, metadata_);
    std::string name = source.path.stem().string();
    if (name.empty()) name = source.path.parent_path().filename().string();
    metadata_.add("general.name", GgufValue::of(std::string_view(name)));
    std::map<DType, size_t> bytes;
    for (size_t i = 0; i < tensors_.size(); ++i)
        bytes[stacks_[i].stored] += gguf_bytes(tensors_[i]);
    const auto most = std::max_element(bytes.begin(), bytes.end(),
                                       [](auto& a, auto& b) { return a.second < b.second; });
    metadata_.add("general.file_type", GgufValue::of(file_type(most->first)));
    metadata_.add("general.quantization_version", GgufValue::of(kQuantisation));
    warnings_ = unread_elsewhere(config);
    if (!source.generation) return;
    const GenerationConfig generation = generation_config(source);
    const auto add = [&](const char* key, const std::optional<double>& value) {
        if (value) metadata_.add(key, GgufValue::of(float(*value)));
    };
    // GGUF has no word for do_sample: temperature 0 says that the likeliest token is taken.
    add("general.sampling.temp",
        generation.do_sample == false ? std::optional<double>(0) : generation.temperature);
    add("general.sampling.top_p", generation.top_p);
    if (generation.top_k)
        metadata_.add("general.sampling.top_k", GgufValue::list(std::span(&*generation.top_k, 1)));
}

size_t GgufExport::data_bytes() const {
    size_t total = 0;
    for (const GgufTensor& tensor : tensors_) total += gguf_bytes(tensor);
    return total;
}

GgufRows GgufExport::rows() const {
    GgufRows rows;
    rows.read = [this](size_t index, int64_t first, int64_t count, std::span<std::byte> out) {
        read(index, first, count, out);
    };
    rows.together = config_.size_of_head();
    return rows;
}

void GgufExport::read(size_t index, int64_t first, int64_t count, std::span<std::byte> out) const {
    const Stack& stack = stacks_[index];
    if (stack.parts.empty()) {
        std::memcpy(out.data(), config_.rope.factors.data(), out.size());
        return;
    }
    // A vector is one row in GGUF; here each of its elements is a row.
    if (stack.cols == 1) return read_part(stack, 0, stack.rows, out);
    const size_t row_bytes = out.size() / size_t(count);
    while (count > 0) {
        const int64_t together = std::min(count, stack.rows - first % stack.rows);
        read_part(stack, first, together, out.first(size_t(together) * row_bytes));
        out = out.subspan(size_t(together) * row_bytes);
        first += together;
        count -= together;
    }
}

// Reads and converts rows of one part.
void GgufExport::read_part(const Stack& stack, int64_t first, int64_t count,
                           std::span<std::byte> out) const {
    const TensorRows& part = stack.parts[size_t(first / stack.rows)];
    const size_t from_bytes = size_bytes(part.type(), size_t(stack.cols)),
                 to_bytes = size_bytes(stack.stored, size_t(stack.cols));
    std::vector<std::byte> data(size_t(count) * from_bytes);
    part.read(int(first % stack.rows), int(count), data.data());
    RowConverter converter(stack.stored, stack.cols);
    const size_t head_dim = size_t(config_.size_of_head());
    for (size_t row = 0; row < size_t(count); ++row) {
        const size_t from = stack.is_rotary ? row_in_halves(row, head_dim) : row;
        std::memcpy(&out[row * to_bytes], converter.convert(&data[from * from_bytes], part.type()),
                    to_bytes);
    }
}

}  // namespace aerie
