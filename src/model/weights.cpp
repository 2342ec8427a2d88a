// Uploading of checkpoint tensors: matrices as they are, vectors as f32.
#include "model/weights.h"

#include <cmath>
#include <cstdio>
#include <cstring>

#include "core/error.h"
#include "core/finite.h"
#include "core/float_environment.h"

namespace aerie {

size_t weight_bytes(const std::string& name, const NamedTensor& matrix, DType as) {
    const int64_t rows = matrix.shape[0], cols = matrix.shape[1];
    const int unit = unit_elements(as);
    if (cols % unit != 0)
        throw Error("'" + name + "' has " + std::to_string(cols) + " columns; " + aerie::name(as) +
                    " needs a multiple of " + std::to_string(unit));
    return size_t(rows) * size_bytes(as, size_t(cols));
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
    // One stack of matrices is in memory twice, as it is stored and on the device; no more.
    std::vector<std::unique_ptr<std::byte[]>> data;
    std::vector<WeightBlock> blocks;
    for (const Part& part : parts) {
        const NamedTensor& tensor =
            checkpoint_.get(part.name, std::initializer_list<int64_t>{part.rows, cols});
        const DType stored = as_.value_or(tensor.dtype);
        weight_bytes(part.name, tensor, stored);  // checks the columns
        const bool converts = is_quantised(tensor.dtype) && stored != tensor.dtype;
        blocks.push_back({converts ? DType::F32 : tensor.dtype, stored, nullptr, part.rows, cols});
    }
    for (size_t i = 0; i < parts.size(); ++i) {
        data.push_back(read(*checkpoint_.find(parts[i].name), blocks[i].dtype, blocks[i].stored));
        blocks[i].data = data.back().get();
    }
    return be_.upload_weight(blocks, use);
}

std::unique_ptr<std::byte[]> WeightLoader::read(const NamedTensor& tensor, DType type,
                                                DType as) const {
    auto data = checkpoint_.read(tensor, type);
    const size_t bytes = size_bytes(type, elements_in(tensor.dtype, tensor.data.size_bytes));
    if (!all_finite({data.get(), bytes}, type, as))
        throw Error(checkpoint_.describe(tensor) + " holds NaN, infinity or what is beyond " +
                    aerie::name(as) + "; its weights are damaged");
    return data;
}

Vector WeightLoader::vector(const std::vector<Part>& parts) const {
    std::vector<float> values;
    for (const Part& part : parts) {
        const NamedTensor& tensor =
            checkpoint_.get(part.name, std::initializer_list<int64_t>{part.rows});
        if (!is_float(tensor.dtype))
            throw Error(checkpoint_.describe(tensor) + " is " + aerie::name(tensor.dtype) +
                        ", expected f32, f16 or bf16");
        const auto data = read(tensor, tensor.dtype, DType::F32);
        for (int i = 0; i < part.rows; ++i) {
            float value = 0;
            uint16_t half = 0;
            if (tensor.dtype == DType::F32)
                std::memcpy(&value, &data[size_t(i) * 4], 4);
            else
                std::memcpy(&half, &data[size_t(i) * 2], 2);
            if (tensor.dtype == DType::F16) value = f16_to_f32(half);
            if (tensor.dtype == DType::BF16) value = bf16_to_f32(half);
            values.push_back(value);
        }
    }
    return upload_floats(be_, values, 1, int(values.size()));
}

Vector upload_floats(Backend& be, const std::vector<float>& values, int rows, int cols) {
    Vector vector;
    vector.buffer = be.allocate(dense_bytes(DType::F32, rows, cols));
    vector.tensor = dense(vector.buffer.get(), DType::F32, rows, cols);
    be.write(vector.tensor, values.data());
    return vector;
}

}  // namespace aerie
