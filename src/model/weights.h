// Named tensors of a checkpoint -> weights on a device.
#pragma once

#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "io/checkpoint.h"

namespace aerie {

// A small f32 tensor (norm weight, bias, table) and its memory.
struct Vector {
    Buffer buffer;
    Tensor tensor;

    operator Tensor() const { return tensor; }
};

// Bytes of a matrix of a checkpoint on the device. Throws Error if its columns are no whole units
// of the type.
size_t weight_bytes(const std::string& name, int64_t rows, int64_t cols, DType as);

// What a matrix is stored as: the type asked for, or what takes its place (core/pack_blocks.h), or
// as it is.
DType stored_type(const NamedTensor& tensor, std::optional<DType> as);

// What a router is stored as: it is small, and other numbers would choose other experts.
inline DType router_type(DType dtype) {
    return is_float(dtype) ? dtype : DType::F32;
}

// Bytes of matrices on a device, by the type that they are stored in.
using WeightTypes = std::map<DType, size_t>;
std::string to_string(const WeightTypes& types);  // "f16", or "q8_0 (3.1 MiB), q4_0 (12.0 MiB)"

// Uploads the parts of one model. With `as` unset every matrix keeps the type it is stored in. A
// tensor with a number that is none (NaN, infinity) is damaged: packing would hide it, so it is
// refused. Throws Error naming file and tensor.
class WeightLoader {
  public:
    WeightLoader(Backend& be, const Checkpoint& checkpoint, std::optional<DType> as)
        : be_(be), checkpoint_(checkpoint), as_(as) {}

    struct Part {
        std::string name;
        int rows;
    };
    // The parts stacked by rows into one weight [sum of rows, cols].
    std::unique_ptr<Weight> matrix(const std::vector<Part>& parts, int cols,
                                   WeightUse use = WeightUse::multiply) const;
    // These rows of a part.
    std::unique_ptr<Weight> chosen_rows(const Part& part, std::span<const int32_t> rows,
                                        int cols) const;
    // The scores of experts; they are floats, whatever the other matrices become.
    std::unique_ptr<Weight> router(const Part& part, int cols) const;
    // Matrices [rows, cols] of the experts 0 .. count - 1, in tensors of their own, named with
    // their numbers between `before` and `after`, or in one [count, rows, cols], named without.
    struct Stack {
        std::string before, after;
        int rows;
    };
    std::unique_ptr<Weight> experts(const std::vector<Stack>& stacks, int count, int cols) const;
    // The parts one after the other, as F32.
    Vector vector(const std::vector<Part>& parts) const;
    Vector vector(const std::string& name, int size) const { return vector({{name, size}}); }

  private:
    // Of one weight, until it is uploaded.
    struct Blocks {
        std::vector<std::unique_ptr<const RowSource>> sources;
        std::vector<WeightBlock> all;
        size_t file_bytes = 0;
    };
    // `count` matrices [rows, cols] of a tensor.
    void add(Blocks& blocks, const NamedTensor& tensor, int count, int rows, int cols,
             std::optional<DType> as) const;
    void add_experts(Blocks& blocks, const Stack& stack, int count, int cols) const;
    std::unique_ptr<Weight> upload(const Blocks& blocks, WeightUse use) const;

    Backend& be_;
    const Checkpoint& checkpoint_;
    std::optional<DType> as_;
};

// A device copy of host floats [rows, cols].
Vector upload_floats(Backend& be, const std::vector<float>& values, int rows, int cols);

}  // namespace aerie
