// Tensors are read some rows at a time, by all cores, and converted as they come.
#include "io/gguf_weights.h"

#include <algorithm>
#include <map>

#include "core/error.h"
#include "core/share.h"
#include "core/utf8.h"
#include "io/gguf_config.h"
#include "io/gguf_convert.h"
#include "io/gguf_rotary.h"

namespace aerie {

namespace {

// What one of our tensors is in the file: one of its own, or an expert's part.
struct Place {
    GgufTensor tensor;
    int head_dim = 0;  // of rows that have to be put in order; 0: they are

    // Rows of a matrix, elements of a vector.
    int64_t rows() const { return tensor.shape.front(); }
    int64_t elements() const { return tensor.rows() * tensor.row_elements(); }
    size_t bytes_as(DType type) const { return size_bytes(type, size_t(elements())); }
};

class GgufWeights {
  public:
    explicit GgufWeights(std::shared_ptr<const Gguf> gguf) : gguf_(std::move(gguf)) {}

    void add(const GgufTensor& tensor, GgufArchitecture architecture, int head_dim);
    std::vector<NamedTensor> tensors() const;
    void read(const std::string& name, DType as, std::span<std::byte> out) const;

  private:
    void place(const std::string& name, Place at);
    void read_rows(const Place& place, int64_t first, int64_t count, DType as,
                   std::span<std::byte> out) const;

    std::shared_ptr<const Gguf> gguf_;
    std::map<std::string, Place> places_;  // by our names
};

void GgufWeights::add(const GgufTensor& tensor, GgufArchitecture architecture, int head_dim) {
    const std::string what = gguf_->describe(tensor);
    const std::optional<GgufName> name = hugging_face_name(architecture, tensor.name);
    if (!name) throw Error(what + " is none of this architecture");
    if (!row_of(tensor.type).decode)
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
        const DType type = runs_as(place.tensor.type);
        tensors.push_back({name, type, place.tensor.shape, {0, place.bytes_as(type)}});
    }
    return tensors;
}

void GgufWeights::read(const std::string& name, DType as, std::span<std::byte> out) const {
    constexpr int64_t kChunkElements = 1 << 18;
    const Place& place = places_.at(name);
    const int64_t rows = place.rows(), row_elements = place.elements() / rows;
    const int64_t head = std::max(place.head_dim, 1);
    const int64_t grain = std::max<int64_t>(kChunkElements / (row_elements * head), 1) * head;
    const int64_t row_bytes = int64_t(out.size()) / rows;
    share(rows, grain, [&](int64_t first, int64_t last) {
        for (int64_t row = first; row < last; row += grain) {
            const int64_t count = std::min(grain, last - row);
            read_rows(place, row, count, as,
                      out.subspan(size_t(row * row_bytes), size_t(count * row_bytes)));
        }
    });
}

void GgufWeights::read_rows(const Place& place, int64_t first, int64_t count, DType as,
                            std::span<std::byte> out) const {
    const size_t row_bytes = place.tensor.data.size_bytes / size_t(place.rows());
    std::vector<std::byte> blocks(size_t(count) * row_bytes);
    gguf_->read(place.tensor, size_t(first) * row_bytes, blocks);
    if (place.head_dim > 0) {
        std::vector<std::byte> halves(blocks.size());
        halves_from_pairs(blocks, halves, size_t(place.head_dim), row_bytes);
        blocks.swap(halves);
    }
    convert(place.tensor.type, blocks, as, out, gguf_->describe(place.tensor));
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
    const auto fill = [weights](const NamedTensor& tensor, DType as, std::span<std::byte> out) {
        weights->read(tensor.name, as, out);
    };
    return Checkpoint::generated(path.string(), weights->tensors(), fill, std::move(file_types));
}

}  // namespace aerie
