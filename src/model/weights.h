// Uploads named tensors of a checkpoint to a device.
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

// The type in which a matrix is stored: the one asked for, or its substitute (core/pack_blocks.h),
// or with `as` unset the tensor's own.
DType stored_type(const NamedTensor& tensor, std::optional<DType> as);

// The type in which a router is stored: it is small, and rounding it would choose other experts.
inline DType router_type(DType dtype) {
    return is_float(dtype) ? dtype : DType::F32;
}

// Bytes of matrices on a device, by stored type.
using WeightTypes = std::map<DType, size_t>;
std::string to_string(const WeightTypes& types);  // "f16", or "q8_0 (3.1 MiB), q4_0 (12.0 MiB)"

// A tensor of a model's files.
struct TensorShape {
    std::string name;
    std::vector<int64_t> shape;
    // For an expert's matrix: the tensor that may hold those of all experts, and their number.
    std::string stack = {};
    int in_stack = 1;
    bool is_router = false;

    int64_t elements() const;
};

// Uploads the parts of one model. With `as` unset every matrix keeps the type of the file. A
// tensor with NaN or infinity is damaged: packing would hide it, so it is refused. Throws Error
// naming file and tensor.
class WeightLoader {
  public:
    WeightLoader(Backend& be, const Checkpoint& checkpoint, std::optional<DType> as)
        : be_(&be), checkpoint_(&checkpoint), as_(as) {}
    // Loads nothing: every call adds what it would load to the list, and its result is empty.
    explicit WeightLoader(std::vector<TensorShape>& list) : list_(&list) {}

    // Whether the files have this tensor. A loader that only lists has every tensor.
    bool has(const std::string& name) const { return list_ || checkpoint_->find(name); }

    struct Part {
        std::string name;
        int rows;
    };
    // Stacks the parts by rows into one weight [sum of rows, cols].
    std::unique_ptr<Weight> matrix(const std::vector<Part>& parts, int cols,
                                   WeightUse use = WeightUse::multiply) const;
    // A weight of these rows of a part.
    std::unique_ptr<Weight> chosen_rows(const Part& part, std::span<const int32_t> rows,
                                        int cols) const;
    // The weight of a router; it stays float, whatever type the other matrices have.
    std::unique_ptr<Weight> router(const Part& part, int cols) const;
    // Matrices [rows, cols] of the experts 0 .. count - 1: either one tensor per expert, with
    // its number between `before` and `after`, or one tensor [count, rows, cols] without a
    // number.
    struct Stack {
        std::string before, after;
        int rows;
    };
    std::unique_ptr<Weight> experts(const std::vector<Stack>& stacks, int count, int cols) const;
    // The parts concatenated, as F32.
    Vector vector(const std::vector<Part>& parts) const;
    Vector vector(const std::string& name, int size) const { return vector({{name, size}}); }
    // The weights of a norm.
    Vector norm(const std::string& name, int size) const { return vector(name, size); }

  private:
    // The blocks of one weight, until it is uploaded.
    struct PendingWeight {
        std::vector<std::unique_ptr<const RowSource>> sources;
        std::vector<WeightBlock> all;
        size_t file_bytes = 0;
    };
    // Adds `count` matrices [rows, cols] of a tensor.
    void add(PendingWeight& pending, const NamedTensor& tensor, int count, int rows, int cols,
             std::optional<DType> as) const;
    void add_experts(PendingWeight& pending, const Stack& stack, int count, int cols) const;
    std::unique_ptr<Weight> upload(const PendingWeight& pending, WeightUse use) const;

    Backend* be_ = nullptr;
    const Checkpoint* checkpoint_ = nullptr;
    std::optional<DType> as_;
    std::vector<TensorShape>* list_ = nullptr;
};

// A device copy of host floats [rows, cols].
Vector upload_floats(Backend& be, const std::vector<float>& values, int rows, int cols);

}  // namespace aerie
