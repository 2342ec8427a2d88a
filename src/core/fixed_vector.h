// A vector of at most N elements that are stored in the object itself, because the decode loop must
// not allocate.
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <initializer_list>
#include <span>

namespace aerie {

template <typename T, size_t N>
class FixedVector {
  public:
    using value_type = T;
    using iterator = T*;
    using const_iterator = const T*;

    FixedVector() = default;
    FixedVector(std::initializer_list<T> items) {
        for (const T& item : items) push_back(item);
    }

    explicit FixedVector(std::span<const T> items) {
        for (const T& item : items) push_back(item);
    }

    static constexpr size_t capacity() { return N; }
    size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }
    T* data() { return items_.data(); }
    const T* data() const { return items_.data(); }
    T* begin() { return data(); }
    T* end() { return data() + size_; }
    const T* begin() const { return data(); }
    const T* end() const { return data() + size_; }
    T& operator[](size_t i) { return items_[i]; }
    const T& operator[](size_t i) const { return items_[i]; }
    T& front() { return items_[0]; }
    const T& front() const { return items_[0]; }
    T& back() { return items_[size_ - 1]; }
    const T& back() const { return items_[size_ - 1]; }

    void push_back(const T& item) {
        assert(size_ < N);
        items_[size_++] = item;
    }
    void pop_back() { --size_; }
    void clear() { size_ = 0; }
    void resize(size_t size) {  // new elements are value-initialised
        assert(size <= N);
        if (size > size_) std::fill(end(), data() + size, T());
        size_ = size;
    }

    friend bool operator==(const FixedVector& a, std::span<const T> b) {
        return std::equal(a.begin(), a.end(), b.begin(), b.end());
    }

  private:
    std::array<T, N> items_;
    size_t size_ = 0;
};

}  // namespace aerie
