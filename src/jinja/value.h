// The values of a template, and texts that know who wrote each byte. All of them are stored in the
// workspace of one rendering, are never changed (except for namespaces) and end with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "jinja/jinja.h"

namespace aerie::jinja {

// A text in well-formed UTF-8.
struct Text {
    const char* data = "";
    const Label* labels = nullptr;  // per byte; nullptr: all are `label`
    uint32_t size = 0;              // bytes
    Label label = kTemplate;        // the highest one of any byte

    std::string_view view() const { return {data, size}; }
    Label label_at(size_t at) const { return labels ? labels[at] : label; }
    // Bytes, not characters.
    Text part(size_t begin, size_t count) const {
        return {data + begin, labels ? labels + begin : nullptr, uint32_t(count), label};
    }
};

// A text of the template, or one of a name that outlives the rendering.
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

// Python's kinds of sequence. Generators are true even if empty, and can be read once; views are
// the results of dict.items() and the like.
enum class ListKind : uint8_t { list, tuple, range, view, generator };

struct Value;
struct Entry;

struct List {
    const Value* items = nullptr;
    uint32_t size = 0;
    ListKind kind = ListKind::list;
    uint8_t depth = 1;                // levels of lists and dicts
    Label label = kTemplate;          // label of brackets, commas and the length
    mutable uint32_t generated = 0;   // items that a generator has already given
    std::string_view view_name = "";  // for a view: how Python prints it
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
struct CyclerState;
struct Statement;  // syntax.h
struct Frame;      // evaluator.h
struct Macro;      // evaluator.h
struct Function;   // a function by its name, or a method with what it is bound to

struct Value {
    Kind kind = Kind::undefined;
    Label label = kTemplate;  // for the printed form of a number, a boolean or none
    bool safe = false;        // a text that is HTML already, like Python's Markup
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
        CyclerState* cycler_state;
    };
    Text text;  // Kind::text; for Kind::undefined the name that was not found

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
    Label label = kTemplate;               // for its numbers
    const List* last_changed = nullptr;    // arguments of loop.changed
    const Statement* recursive = nullptr;  // loop(items) runs it again; nullptr: not callable
    Frame* scope = nullptr;                // the frame around that loop
    int64_t depth = 1;
};

// The items that a cycler returns one after another, or the separator of a joiner.
struct CyclerState {
    std::span<const Value> items;
    size_t at = 0;  // index of the next item
};

struct Function {
    std::string_view name;
    const Value* self = nullptr;  // set for a method
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
// A text made from `origin`, which is safe if `origin` is.
Value make_text_like(const Value& origin, const Text& text);

// The least trusted label in the printed form of the value.
Label label_of(const Value& value);
// Python's name for the type of the value.
std::string_view type_name(const Value& value);
bool is_true(const Value& value);

}  // namespace aerie::jinja
