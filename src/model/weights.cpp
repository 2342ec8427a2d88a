// Uploads tensors of a checkpoint: matrices in the stored type, vectors as f32.
#include "model/weights.h"

#include <cmath>
#include <cstdio>
#include <cstring>

#include "core/error.h"
#include "core/pack_blocks.h"
#include "core/quant.h"
#include "model/tensor_rows.h"

namespace aerie {

size_t weight_bytes(const std::string& name, int64_t rows, int64_t cols, DType as) {
    const int unit = unit_elements(as);
    if (cols % unit != 0)
        throw Error(name + " has " + std::to_string(cols) + " columns; " + aerie::name(as) +
                    " needs a multiple of " + std::to_string(unit));
    return size_t(rows) * size_bytes(as, size_t(cols));
}

DType stored_type(const NamedTensor& tensor, std::optional<DType> as) {
    return as ? type_for(*as, tensor.shape.back()) : tensor.dtype;
}

std::string to_string(const WeightTypes& types) {
    std::string text;
    for (const auto& [type, bytes] : types) {
        char size[40] = "";
        if (types.size() > 1)
            std::snprintf(size, sizeof(size), " (%.1f MiB)", double(bytes) / double(1 << 20));
        text += (text.empty() ? "" : ", ") + std::string(aerie::name(type)) + size;
    }
    return text;
}

std::unique_ptr<Weight> WeightLoader::matrix(const std::vector<Part>& parts, int cols,
                                             WeightUse use) const {
    if (list_) {
        for (const Part& part : parts) list_->push_back({part.name, {part.rows, cols}});
        return nullptr;
    }
    // Everything is looked up before anything is read.
    std::vector<const NamedTensor*> tensors;
    for (const Part& part : parts) {
        tensors.push_back(
            &checkpoint_->get(part.name, std::initializer_list<int64_t>{part.rows, cols}));
        weight_bytes(checkpoint_->describe(*tensors.back()), part.rows, cols,
                     stored_type(*tensors.back(), as_));
    }
    PendingWeight pending;
    for (size_t i = 0; i < parts.size(); ++i)
        add(pending, *tensors[i], 1, parts[i].rows, cols, as_);
    return upload(pending, use);
}

void WeightLoader::add(PendingWeight& pending, const NamedTensor& tensor, int count, int rows,
                       int cols, std::optional<DType> as) const {
    const DType stored = stored_type(tensor, as);
    weight_bytes(checkpoint_->describe(tensor), rows, cols, stored);  // checks the columns
    checkpoint_->check(tensor);
    pending.file_bytes += tensor.data.size_bytes;
    for (int i = 0; i < count; ++i) {
        const MatrixSlice place{size_t(i) * size_t(rows) * size_t(cols), cols};
        auto source = std::make_unique<const TensorRows>(*checkpoint_, tensor, stored, place);
        pending.all.push_back({source->type(), stored, nullptr, rows, cols, source.get()});
        pending.sources.push_back(std::move(source));
    }
}

std::unique_ptr<Weight> WeightLoader::upload(const PendingWeight& pending, WeightUse use) const {
    for (const WeightBlock& block : pending.all)
        if (!be_->stores(block.stored))
            throw Error(checkpoint_->folder().string() + ": " + be_->capabilities().name +
                        " cannot store " + name(block.stored));
    auto weight = be_->upload_weight(pending.all, use);
    if (checkpoint_->on_loaded) checkpoint_->on_loaded(pending.file_bytes);
    return weight;
}

std::unique_ptr<Weight> WeightLoader::chosen_rows(const Part& part, std::span<const int32_t> rows,
                                                  int cols) const {
    const NamedTensor& tensor =
        checkpoint_->get(part.name, std::initializer_list<int64_t>{part.rows, cols});
    const DType stored = stored_type(tensor, as_);
    weight_bytes(part.name, part.rows, cols, stored);  // checks the columns
    checkpoint_->check(tensor);
    const TensorRows source(*checkpoint_, tensor, stored, {0, cols, rows});
    const WeightBlock block{source.type(), stored, nullptr, int(rows.size()), cols, &source};
    return be_->upload_weight({&block, 1}, WeightUse::multiply);
}

std::unique_ptr<Weight> WeightLoader::router(const Part& part, int cols) const {
    if (list_) {
        list_->push_back({part.name, {part.rows, cols}});
        list_->back().is_router = true;
        return nullptr;
    }
    const NamedTensor& tensor =
        checkpoint_->get(part.name, std::initializer_list<int64_t>{part.rows, cols});
    PendingWeight pending;
    add(pending, tensor, 1, part.rows, cols, router_type(tensor.dtype));
    return upload(pending, WeightUse::multiply);
}

void WeightLoader::add_experts(PendingWeight& pending, const Stack& stack, int count,
                               int cols) const {
    const int rows = stack.rows;
    if (checkpoint_->find(stack.before + stack.after)) {
        const auto shape = {int64_t(count), int64_t(rows), int64_t(cols)};
        return add(pending, checkpoint_->get(stack.before + stack.after, shape), count, rows, cols,
                   as_);
    }
    for (int e = 0; e < count; ++e) {
        const std::string name = stack.before + std::to_string(e) + "." + stack.after;
        const NamedTensor& tensor =
            checkpoint_->get(name, std::initializer_list<int64_t>{rows, cols});
        add(pending, tensor, 1, rows, cols, as_);
        if (e > 0 && pending.all.back().stored != pending.all[pending.all.size() - 2].stored)
            throw Error(checkpoint_->describe(tensor) + " is stored in another type than the " +
                        "expert before it");
    }
}

std::unique_ptr<Weight> WeightLoader::experts(const std::vector<Stack>& stacks, int count,
                                              int cols) const {
    if (list_) {
        for (int e = 0; e < count; ++e)
            for (const Stack& stack : stacks)
                list_->push_back({stack.before + std::to_string(e) + "." + stack.after,
                                  {stack.rows, cols},
                                  stack.before + stack.after,
                                  count});
        return nullptr;
    }
    PendingWeight pending;
    for (const Stack& stack : stacks) add_experts(pending, stack, count, cols);
    return upload(pending, WeightUse::experts);
}

Vector WeightLoader::vector(const std::vector<Part>& parts) const {
    if (list_) {
        for (const Part& part : parts) list_->push_back({part.name, {part.rows}});
        return {};
    }
    std::vector<float> values;
    for (const Part& part : parts) {
        const NamedTensor& tensor =
            checkpoint_->get(part.name, std::initializer_list<int64_t>{part.rows});
        if (!is_float(tensor.dtype))
            throw Error(checkpoint_->describe(tensor) + " is " + aerie::name(tensor.dtype) +
                        ", expected f32, f16 or bf16");
        const auto data = checkpoint_->read(tensor);
        check_finite(*checkpoint_, tensor, {data.get(), tensor.data.size_bytes}, tensor.dtype,
                     DType::F32);
        values.resize(values.size() + size_t(part.rows));
        unpack(values.data() + values.size() - size_t(part.rows), data.get(), tensor.dtype,
               size_t(part.rows));
    }
    return upload_floats(*be_, values, 1, int(values.size()));
}

Vector upload_floats(Backend& be, const std::vector<float>& values, int rows, int cols) {
    Vector vector;
    vector.buffer = be.allocate(dense_bytes(DType::F32, rows, cols));
    vector.tensor = dense(vector.buffer.get(), DType::F32, rows, cols);
    be.write(vector.tensor, values.data());
    return vector;
}

}  // namespace aerie
