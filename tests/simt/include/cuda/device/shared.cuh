// Stands in for the shared memory of backends/cuda: the same array, which checks every access to
// its elements (see Cell in simt/model.h).
#pragma once

#include <cuda_runtime.h>

#include <bit>
#include <string>

namespace aerie::cuda {

template <class T, int count>
class SharedArray {
  public:
    class Element {
      public:
        Element(SharedArray& array, int index) : array_(array), index_(index) {}
        operator T() const {
            array_.cells_[index_].read();
            return array_.data_[index_];
        }
        const Element& operator=(const T& value) const {
            array_.cells_[index_].write();
            array_.data_[index_] = value;
            return *this;
        }
        const Element& operator=(const Element& other) const { return *this = T(other); }

      private:
        SharedArray& array_;
        int index_;
    };

    Element operator[](int index) {
        if (index < 0 || index >= count)
            simt::fault("element " + std::to_string(index) + " of a shared array of " +
                        std::to_string(count));
        return {*this, index};
    }

    template <class Joined>
    Joined joined(int index) {
        constexpr int kParts = sizeof(Joined) / sizeof(T);
        T parts[kParts];
        if (index % kParts != 0) simt::fault("a joined value that is not aligned");
        for (int i = 0; i < kParts; ++i) parts[i] = (*this)[index + i];
        return std::bit_cast<Joined>(parts);
    }
    template <class Part>
    Part part(int index, int place) {
        const T whole = (*this)[index];
        if (place < 0 || size_t(place) >= sizeof(T) / sizeof(Part))
            simt::fault("part " + std::to_string(place) + " of an element of a shared array");
        Part value;
        std::memcpy(&value, reinterpret_cast<const char*>(&whole) + size_t(place) * sizeof(Part),
                    sizeof(Part));
        return value;
    }

    // For asynchronous copies: nobody may read the element before the copy has ended.
    void spoil(int index) { (void)(*this)[index], cells_[index].spoil(); }

  private:
    T data_[count];
    simt::Cell cells_[count];
};

template <class T>
T& launch_shared() {
    static T memory;
    return memory;
}

}  // namespace aerie::cuda
