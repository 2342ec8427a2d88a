// Tensors are read in chunks of rows, by all cores, and converted chunk by chunk.
#include "io/gguf/weights.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "core/error.h"
#include "core/parallel_for.h"
#include "core/utf8.h"
#include "io/gguf/config.h"
#include "io/gguf/convert.h"
#include "io/gguf/rotary.h"

namespace aerie {

namespace {

// Where one of our tensors lies: a tensor of the file, or an expert's part of one.
struct Place {
    GgufTensor tensor;
    int head_dim = 0;  // rows are reordered within heads of this size; 0: they are not
    bool is_ids = false;

    // Rows of a matrix, elements of a vector.
    int64_t rows() const { return tensor.shape.front(); }
    int64_t elements() const { return tensor.rows() * tensor.row_elements(); }
    size_t bytes_as(DType type) const { return size_bytes(type, size_t(elements())); }
    size_t row_bytes() const { return tensor.data.size_bytes / size_t(rows()); }
};

class GgufWeights {
  public:
    explicit GgufWeights(std::shared_ptr<const Gguf> gguf) : gguf_(std::move(gguf)) {}

    void add(const GgufTensor& tensor, GgufArchitecture architecture, int head_dim);
    std::vector<NamedTensor> tensors() const;
    void read(const std::string& name, DType as, size_t first, std::span<std::byte> out) const;

  private:
    void place(const std::string& name, Place at);
    void read_rows(const Place& place, int64_t first, int64_t count, DType as,
                   std::span<std::byte> out) const;
    void read_offsets(const Place& place, size_t first, std::span<std::byte> out) const;
    void read_blocks(const Place& place, int64_t first, int64_t count, std::byte* out) const;

    std::shared_ptr<const Gguf> gguf_;
    std::map<std::string, Place> places_;  // by Hugging Face names
};

void GgufWeights::add(const GgufTensor& tensor, GgufArchitecture architecture, int head_dim) {
    const std::string what = gguf_->describe(tensor);
    const std::optional<GgufName> name = hugging_face_name(architecture, tensor.name);
    if (!name) throw Error(what + " is none of this architecture");
    if (name->role == GgufRole::Ids && tensor.type == GgmlType::I64)
        return place(name->name, {.tensor = tensor, .is_ids = true});
    if (!row_of(tensor.type).dtype)
        throw Error(what + " is " + aerie::name(tensor.type) + ", which holds no weights");
    if (name->role == GgufRole::Factors) return;
    if (name->role == GgufRole::Experts) {
        if (tensor.shape.size() < 2) throw Error(what + " holds no experts");
        for (int64_t i = 0; i < tensor.shape.front(); ++i)
            place(name->of_expert(i), {part_of(tensor, i, tensor.name)});
        return;
    }
    Place whole{tensor, name->role == GgufRole::Rotary ? head_dim : 0};
    if (whole.head_dim > 0 && whole.rows() % whole.head_dim != 0)
        throw Error(what + " has shape " + tensor.shape_text() + ", no whole heads of " +
                    std::to_string(head_dim) + " rows");
    place(name->name, std::move(whole));
}

void GgufWeights::place(const std::string& name, Place at) {
    const std::string what = gguf_->describe(at.tensor);
    if (!places_.emplace(name, std::move(at)).second)
        throw Error(what + " gives " + in_quotes(name) + " a second time");
}

std::vector<NamedTensor> GgufWeights::tensors() const {
    std::vector<NamedTensor> tensors;
    for (const auto& [name, place] : places_) {
        const DType type = place.is_ids ? DType::I64 : *row_of(place.tensor.type).dtype;
        tensors.push_back({name, type, place.tensor.shape, {0, place.bytes_as(type)}});
    }
    return tensors;
}

void GgufWeights::read(const std::string& name, DType as, size_t first,
                       std::span<std::byte> out) const {
    constexpr int64_t kChunkElements = 1 << 18;
    const Place& place = places_.at(name);
    if (place.is_ids) return read_offsets(place, first, out);
    const int64_t row_elements = place.elements() / place.rows();
    const size_t row_bytes = size_bytes(as, size_t(row_elements));
    const int64_t first_row = int64_t(first) / row_elements;
    const int64_t grain = std::max<int64_t>(kChunkElements / row_elements, 1);
    parallel_for(int64_t(out.size() / row_bytes), grain, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; row += grain) {
            const int64_t count = std::min(grain, end - row);
            read_rows(place, first_row + row, count, as,
                      out.subspan(size_t(row) * row_bytes, size_t(count) * row_bytes));
        }
    });
}

// Ids minus their indices. An invalid id may wrap around: the result is invalid as well.
void GgufWeights::read_offsets(const Place& place, size_t first, std::span<std::byte> out) const {
    gguf_->read(place.tensor, first * sizeof(uint64_t), out);
    for (size_t at = 0; at < out.size(); at += sizeof(uint64_t), ++first) {
        uint64_t id = 0;
        std::memcpy(&id, &out[at], sizeof(id));
        id -= first;
        std::memcpy(&out[at], &id, sizeof(id));
    }
}

void GgufWeights::read_rows(const Place& place, int64_t first, int64_t count, DType as,
                            std::span<std::byte> out) const {
    std::vector<std::byte> blocks(size_t(count) * place.row_bytes());
    read_blocks(place, first, count, blocks.data());
    convert(place.tensor.type, blocks, as, out, gguf_->describe(place.tensor));
}

// Reads rows in our order. In the file, rows of one half of a head alternate with those of the
// other.
void GgufWeights::read_blocks(const Place& place, int64_t first, int64_t count,
                              std::byte* out) const {
    const size_t row_bytes = place.row_bytes();
    if (place.head_dim == 0)
        return gguf_->read(place.tensor, size_t(first) * row_bytes,
                           {out, size_t(count) * row_bytes});
    const int64_t half = place.head_dim / 2;
    std::vector<std::byte> pairs;
    while (count > 0) {
        const int64_t together = std::min(count, half - first % half);
        const size_t begin = row_in_pairs(size_t(first), size_t(place.head_dim));
        pairs.resize(size_t(2 * together - 1) * row_bytes);
        gguf_->read(place.tensor, begin * row_bytes, pairs);
        for (int64_t i = 0; i < together; ++i, out += row_bytes)
            std::memcpy(out, &pairs[size_t(2 * i) * row_bytes], row_bytes);
        first += together;
        count -= together;
    }
}

}  // namespace

Checkpoint gguf_weights(const std::filesystem::path& path, std::shared_ptr<const Gguf> gguf) {
    const GgufArchitecture architecture = architecture_of(*gguf);
    const int head_dim = gguf_head_dim(*gguf);
    auto weights = std::make_shared<GgufWeights>(gguf);
    std::map<std::string, size_t> file_types;
    for (const GgufTensor& tensor : gguf->tensors()) {
        weights->add(tensor, architecture, head_dim);
        file_types[name(tensor.type)] += tensor.data.size_bytes;
    }
    const auto fill = [weights](const NamedTensor& tensor, DType as, size_t first,
                                std::span<std::byte> out) {
        weights->read(tensor.name, as, first, out);
    };
    const auto name_in_file = [architecture](const std::string& name) {
        const auto place = gguf_place(architecture, name);
        return place ? place->name : "";
    };
    return Checkpoint::generated(path.string(), weights->tensors(), fill, std::move(file_types),
                                 gguf->files(), name_in_file);
}

}  // namespace aerie
