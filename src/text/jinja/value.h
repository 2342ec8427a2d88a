// What a template computes with: values, and texts that know who wrote each byte. All of them lie
// in the workspace of one rendering, are never changed (but namespaces) and end with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja.h"

namespace aerie::jinja {

// Well-formed UTF-8.
struct Text {
    const char* data = "";
    const Label* labels = nullptr;  // of each byte; nullptr: all are `label`
    uint32_t size = 0;              // bytes
    Label label = kTemplate;        // no byte has a higher one

    std::string_view view() const { return {data, size}; }
    Label label_at(size_t at) const { return labels ? labels[at] : label; }
    // Bytes, not characters.
    Text part(size_t begin, size_t count) const {
        return {data + begin, labels ? labels + begin : nullptr, uint32_t(count), label};
    }
};

// A text of the template, or of names that outlive the rendering.
inline Text text_of(std::string_view bytes, Label label = kTemplate) {
    return {bytes.data(), nullptr, uint32_t(bytes.size()), label};
}

enum class Kind : uint8_t {
    undefined,
    none,
    boolean,
    integer,
    real,
    text,
    list,
    dict,
    name_space,
    macro,
    loop,
    function,
    cycler,
    joiner
};

// Python's kinds of sequence. Generators are true even if empty, and are read once; views are what
// dict.items() and its like give.
enum class ListKind : uint8_t { list, tuple, range, view, generator };

struct Value;
struct Entry;

struct List {
    const Value* items = nullptr;
    uint32_t size = 0;
    ListKind kind = ListKind::list;
    uint8_t depth = 1;                // levels of lists and dicts
    Label label = kTemplate;          // of brackets and commas, and of its length
    mutable uint32_t generated = 0;   // items that a generator has already given
    std::string_view view_name = "";  // of a view: how Python prints it
    std::span<const Value> span() const;
};

// Keys in the order of their insertion.
struct Dict {
    const Entry* entries = nullptr;
    uint32_t size = 0;
    uint8_t depth = 1;
    Label label = kTemplate;
    std::span<const Entry> span() const;
};

struct Namespace;
struct Loop;
struct Turns;
struct Statement;  // syntax.h
struct Frame;      // evaluator.h
struct Macro;      // evaluator.h
struct Function;   // a function by its name, or a method with what it is bound to

struct Value {
    Kind kind = Kind::undefined;
    Label label = kTemplate;  // of what is printed of a number, a boolean or none
    bool safe = false;        // a text that is HTML already, as Python's Markup
    union {
        bool boolean;
        int64_t integer = 0;
        double real;
        const List* list;
        const Dict* dict;
        Namespace* name_space;
        const Macro* macro;
        Loop* loop;
        const Function* function;
        Turns* turns;
    };
    Text text;  // of Kind::text; of Kind::undefined: what was not found

    bool is(Kind other) const { return kind == other; }
    bool is_number() const {
        return kind == Kind::integer || kind == Kind::real || kind == Kind::boolean;
    }
    bool is_whole() const { return kind == Kind::integer || kind == Kind::boolean; }
    int64_t whole() const { return kind == Kind::boolean ? boolean : integer; }  // if is_whole()
    double number() const { return kind == Kind::real ? real : double(whole()); }
};

struct Entry {
    Value key, value;
};

using NamedValues = std::pmr::vector<std::pair<std::string_view, Value>>;

struct Namespace {
    NamedValues names;
};

// The variable `loop`.
struct Loop {
    std::span<const Value> items;
    size_t at = 0;
    Label label = kTemplate;             // of its numbers
    const List* last_changed = nullptr;  // arguments of loop.changed
    const Statement* recursive = nullptr;  // what loop(items) runs again, if it may be called
    Frame* scope = nullptr;                // around that
    int64_t depth = 1;
};

// A cycler's items, which it gives one after another, or a joiner's separator.
struct Turns {
    std::span<const Value> items;
    size_t at = 0;  // of the next one
};

struct Function {
    std::string_view name;
    const Value* self = nullptr;  // of a method
};

inline std::span<const Value> List::span() const {
    return {items, size};
}
inline std::span<const Entry> Dict::span() const {
    return {entries, size};
}

Value make_undefined(std::string_view name);
Value make_none(Label label = kTemplate);
Value make_boolean(bool boolean, Label label = kTemplate);
Value make_integer(int64_t integer, Label label = kTemplate);
Value make_real(double real, Label label = kTemplate);
Value make_text(const Text& text);
inline Value make_text(std::string_view bytes) {
    return make_text(text_of(bytes));
}
// The text is made of `origin`: it is safe if that is.
Value make_text_like(const Value& origin, const Text& text);

// The least trusted label of what is printed of it.
Label label_of(const Value& value);
// Python's name of its type.
std::string_view type_name(const Value& value);
bool is_true(const Value& value);

}  // namespace aerie::jinja
