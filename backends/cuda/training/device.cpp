#include "cuda/training/device.h"

#include <algorithm>

#include "backend/training_checks.h"
#include "cuda/backend.h"
#include "cuda/code.h"
#include "cuda/training/cuda_training.h"

namespace aerie::cuda {

CudaTraining::CudaTraining(const std::string& device)
    : queue_(std::make_shared<Queue>(find_device(device), false)) {
    check_code(device);
    cublas_ = open_cublas(queue_);
}

Matrix CudaTraining::allocate(int rows, int cols) {
    const size_t bytes = size_t(rows) * size_t(cols) * sizeof(float);
    const auto memory = std::make_shared<CudaMemory>(bytes, queue_);
    queue_->fill(memory->data(), 0, bytes);
    return {memory, 0, rows, cols, cols};
}

void CudaTraining::write(const Matrix& to, std::span<const float> dense) {
    check_copied(to, dense.size());
    queue_->write(tensor_of(to), dense.data());
}

void CudaTraining::write(const Matrix& to, std::span<const double> dense) {
    const std::vector<float> rounded(dense.begin(), dense.end());
    write(to, std::span<const float>(rounded));
}

void CudaTraining::read(const Matrix& from, std::span<double> dense) {
    check_copied(from, dense.size());
    std::vector<float> values(dense.size());
    if (!values.empty()) queue_->read(tensor_of(from), values.data());
    std::copy(values.begin(), values.end(), dense.begin());
}

const int* CudaTraining::upload(std::span<const int> numbers) {
    const int* const uploaded = numbers_.take<int>(numbers.size(), queue_);
    queue_->write(numbers_.words<int>(numbers.size()), numbers.data());
    return uploaded;
}

std::vector<double> CudaTraining::read_sums(size_t count) {
    std::vector<double> values(count);
    if (count > 0) queue_->read(sums_.words<double>(count), values.data());
    return values;
}

std::unique_ptr<TrainingDevice> open_training(const std::string& device) {
    return std::make_unique<CudaTraining>(device);
}

}  // namespace aerie::cuda
