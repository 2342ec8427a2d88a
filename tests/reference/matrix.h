// Host matrices for tests: random inputs, double-precision results, and the error between the two.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace aerie::reference {

template <class T>
struct MatrixOf {
    int rows = 0, cols = 0;
    std::vector<T> data;

    MatrixOf() = default;
    MatrixOf(int rows, int cols, T fill = T())
        : rows(rows), cols(cols), data(size_t(rows) * size_t(cols), fill) {}

    T* operator[](int row) { return data.data() + size_t(row) * size_t(cols); }
    const T* operator[](int row) const { return data.data() + size_t(row) * size_t(cols); }
};
using Matrix = MatrixOf<float>;
using Exact = MatrixOf<double>;
using Indices = MatrixOf<int32_t>;

// Normally distributed numbers, equal for equal seeds.
inline Matrix random_matrix(int rows, int cols, unsigned seed, float deviation = 1) {
    std::mt19937 generator(seed);
    std::normal_distribution<float> normal(0, deviation);
    Matrix m(rows, cols);
    for (float& x : m.data) x = normal(generator);
    return m;
}

// Normalised mean squared error: squared error / squared norm. No bound accepts it if anything is
// NaN (it is NaN then) or if the sizes differ (it is 1e300).
inline double nmse(const Matrix& got, const Exact& want) {
    if (got.data.size() != want.data.size()) return 1e300;
    double error = 0, norm = 1e-300;
    for (size_t i = 0; i < want.data.size(); ++i) {
        error += (got.data[i] - want.data[i]) * (got.data[i] - want.data[i]);
        norm += want.data[i] * want.data[i];
    }
    return error / norm;
}

}  // namespace aerie::reference
