#include "train/head_file.h"

#include <cstring>

#include "core/dtype.h"
#include "core/error.h"
#include "core/pending_file.h"
#include "core/quant.h"
#include "draft/heads/kinds.h"
#include "io/json.h"
#include "io/model_source.h"
#include "io/safetensors_writer.h"

namespace aerie::train {

namespace fs = std::filesystem;

namespace {

// An EAGLE-3 head has a name of its own; EAGLE-1 and EAGLE-2 heads are published as Llama.
Json config_of(const HeadShape& shape, const HeadFile& file) {
    const bool is_eagle3 = shape.draft_vocab > 0;
    Json config;
    const char* const architecture = is_eagle3 ? "LlamaForCausalLMEagle3" : "LlamaForCausalLM";
    config.set("architectures", Json::Array(1, Json(architecture)));
    config.set("model_type", "llama");
    for (const auto& [key, value] : std::initializer_list<std::pair<const char*, int>>{
             {"num_hidden_layers", 1},
             {"hidden_size", shape.hidden},
             {"intermediate_size", shape.intermediate},
             {"num_attention_heads", shape.heads},
             {"num_key_value_heads", shape.kv_heads},
             {"head_dim", shape.head_dim},
             {"vocab_size", shape.vocab},
             {"max_position_embeddings", file.target.context}})
        config.set(key, value);
    config.set("rms_norm_eps", shape.epsilon);
    config.set("rope_theta", shape.rope_base);
    config.set("hidden_act", "silu");
    config.set("torch_dtype", file.dtype == DType::F32 ? "float32" : "float16");
    if (!file.target.eos_ids.empty()) config.set("eos_token_id", file.target.eos_ids.front());
    if (!is_eagle3) return config;
    config.set("draft_vocab_size", shape.draft_vocab);
    // Published files name the layers by their outputs.
    Json::Array layers;
    for (const int tap : file.taps) layers.push_back(tap - 1);
    config.set("eagle_aux_hidden_state_layer_ids", std::move(layers));
    return config;
}

// The bytes of all tensors, by name.
struct Tensors {
    std::vector<NamedTensor> described;
    std::vector<std::vector<std::byte>> bytes;

    template <class T>
    void add(const std::string& name, DType dtype, std::vector<int64_t> shape,
             const std::vector<T>& values) {
        described.push_back({.name = name, .dtype = dtype, .shape = std::move(shape), .data = {}});
        bytes.emplace_back(values.size() * sizeof(T));
        std::memcpy(bytes.back().data(), values.data(), bytes.back().size());
    }
};

void add_parameter(Tensors& tensors, TrainingDevice& device, const Parameter& parameter,
                   DType dtype) {
    std::vector<double> values(parameter.value.size());
    device.read(parameter.value, values);
    std::vector<int64_t> shape = {parameter.value.cols};
    if (parameter.value.rows > 1) shape.insert(shape.begin(), parameter.value.rows);
    if (dtype == DType::F32)
        return tensors.add(parameter.name, dtype, shape,
                           std::vector<float>(values.begin(), values.end()));
    std::vector<uint16_t> halves;
    for (const double value : values) halves.push_back(f32_to_f16(float(value)));
    tensors.add(parameter.name, dtype, shape, halves);
}

// d2t: draft token d is the target's token d + d2t[d]. t2d: whether a token is in the draft
// vocabulary.
void add_vocabulary(Tensors& tensors, const DraftVocabulary& vocabulary) {
    std::vector<int64_t> offsets;
    for (size_t d = 0; d < vocabulary.ids.size(); ++d)
        offsets.push_back(vocabulary.ids[d] - int64_t(d));
    tensors.add("d2t", DType::I64, {int64_t(offsets.size())}, offsets);
    std::vector<uint8_t> has(vocabulary.has.begin(), vocabulary.has.end());
    tensors.add("t2d", DType::Bool, {int64_t(has.size())}, has);
}

}  // namespace

void write_head(const fs::path& folder, TrainingDevice& device, const TrainedHead& head,
                const HeadFile& file) {
    Tensors tensors;
    for (const Parameter& parameter : head.parameters())
        add_parameter(tensors, device, parameter, file.dtype);
    if (head.shape().draft_vocab > 0) add_vocabulary(tensors, file.vocabulary);
    fs::create_directories(folder);
    // Both files are complete before either takes its place; the configuration of a head that is
    // trained on stays the same.
    const PendingFile staging(folder / "written", PendingFile::Kind::folder);
    write_text(staging.path() / "config.json", config_of(head.shape(), file).dump() + "\n");
    write_safetensors(staging.path(), tensors.described, SIZE_MAX,
                      [&](const NamedTensor& tensor, size_t offset, std::span<std::byte> out) {
                          for (size_t i = 0; i < tensors.described.size(); ++i)
                              if (tensors.described[i].name == tensor.name)
                                  std::memcpy(out.data(), tensors.bytes[i].data() + offset,
                                              out.size());
                      });
    for (const char* name : {"model.safetensors", "config.json"})
        fs::rename(staging.path() / name, folder / name);
}

void read_head(const fs::path& folder, TrainingDevice& device, TrainedHead& head) {
    const ModelSource source = open_head(folder);
    for (const Parameter& parameter : head.parameters()) {
        std::vector<int64_t> shape = {parameter.value.cols};
        if (parameter.value.rows > 1) shape.insert(shape.begin(), parameter.value.rows);
        const NamedTensor& tensor = source.tensors.get(parameter.name, shape);
        const auto bytes = source.tensors.read(tensor);
        if (!is_float(tensor.dtype))
            throw Error(source.tensors.describe(tensor) + " is " + name(tensor.dtype) +
                        "; a head that is trained must be f32, f16 or bf16");
        std::vector<float> values(parameter.value.size());
        unpack(values.data(), bytes.get(), tensor.dtype, values.size());
        device.write(parameter.value, std::span<const float>(values));
    }
}

}  // namespace aerie::train
