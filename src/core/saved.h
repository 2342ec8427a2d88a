// Interfaces to write values and bytes to a file and to read them back in the same order.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace aerie {

class SaveSink {
  public:
    virtual ~SaveSink() = default;
    virtual void write(std::span<const std::byte> bytes) = 0;  // throws Error

    template <typename T>
    void value(const T& value) {
        static_assert(std::is_arithmetic_v<T>);
        write(std::as_bytes(std::span(&value, 1)));
    }
};

class SaveSource {
  public:
    virtual ~SaveSource() = default;
    // Fills `out`. Throws Error if fewer bytes are left.
    virtual void read(std::span<std::byte> out) = 0;
    [[noreturn]] virtual void fail(const std::string& why) const = 0;  // Error naming the file

    template <typename T>
    T value() {
        static_assert(std::is_arithmetic_v<T>);
        T value;
        read(std::as_writable_bytes(std::span(&value, 1)));
        return value;
    }
    // Reads a value; fails with the name `what` if it is outside [low, high] or NaN.
    template <typename T>
    T value(T low, T high, const char* what) {
        const T value = this->value<T>();
        if (!(value >= low && value <= high)) fail(std::string(what) + " cannot be");
        return value;
    }
};

}  // namespace aerie
