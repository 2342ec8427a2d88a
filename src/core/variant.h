// A std::variant that can be copied when memory runs out.
#pragma once

#include <utility>
#include <variant>

namespace aerie {

// libstdc++ 12 assumes that a variant always holds a value if all alternatives are numbers,
// strings, vectors and similar. When the copy constructor of such a variant throws, it destroys an
// alternative that was never made. Here an alternative copies itself, and the variant is made of
// the copy.
template <class... Types>
class Variant : public std::variant<Types...> {
  public:
    using Base = std::variant<Types...>;
    using Base::Base;
    using Base::operator=;

    Variant() = default;
    Variant(const Variant& other) : Base(copied(other)) {}
    Variant(Variant&&) = default;
    Variant& operator=(const Variant& other) {
        Base::operator=(copied(other));
        return *this;
    }
    Variant& operator=(Variant&&) = default;
    ~Variant() = default;

  private:
    static Base copied(const Base& other) {
        return std::visit(
            []<class T>(const T& value) { return Base(std::in_place_type<T>, value); }, other);
    }
};

}  // namespace aerie
