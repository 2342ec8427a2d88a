// A model in the form of a GGUF file: its tensors under the names of llama.cpp, and its
// configuration.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "io/gguf/names.h"
#include "io/gguf/writer.h"
#include "io/model_source.h"
#include "model/config.h"
#include "model/tensor_rows.h"
#include "model/tensors.h"

namespace aerie {

class GgufExport {
  public:
    // Matrices are stored as `weights`, or if that is unset in their own type; routers and vectors
    // as F32. `source` must outlive this. Throws Error for a tensor that is missing or does not
    // fit, and for what GGUF cannot express.
    GgufExport(const ModelSource& source, std::optional<DType> weights);

    const GgufMetadata& metadata() const { return metadata_; }
    GgufMetadata& metadata() { return metadata_; }
    const std::vector<GgufTensor>& tensors() const { return tensors_; }
    GgufRows rows() const;
    size_t data_bytes() const;  // bytes of the data of all tensors
    // One line for each property that other programs do not read.
    const std::vector<std::string>& warnings() const { return warnings_; }

  private:
    // A tensor of the file: a stack of matrices of one shape.
    struct Stack {
        std::vector<TensorRows> parts;
        DType stored = DType::F32;
        int rows = 0, cols = 0;  // size of each part
        bool is_rotary = false;
    };
    void add(const TensorShape& wanted, std::optional<DType> weights);
    void add_factors();
    void describe(const ModelSource& source);
    void read(size_t index, int64_t first, int64_t count, std::span<std::byte> out) const;
    void read_part(const Stack& stack, int64_t first, int64_t count,
                   std::span<std::byte> out) const;

    const Checkpoint& checkpoint_;
    ModelConfig config_;
    GgufArchitecture architecture_;
    GgufMetadata metadata_;
    std::vector<GgufTensor> tensors_;
    std::vector<Stack> stacks_;  // one per tensor; RoPE's factors are one without parts
    std::vector<std::string> warnings_;
};

}  // namespace aerie
