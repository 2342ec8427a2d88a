// Makes values, and answers questions about a single value.
#include "jinja/value.h"

namespace aerie::jinja {
namespace {

Value made(Kind kind, Label label) {
    Value value;
    value.kind = kind;
    value.label = label;
    return value;
}

}  // namespace

Value make_undefined(std::string_view name) {
    Value value;
    value.text = text_of(name);
    return value;
}

Value make_none(Label label) {
    return made(Kind::none, label);
}

Value make_boolean(bool boolean, Label label) {
    Value value = made(Kind::boolean, label);
    value.boolean = boolean;
    return value;
}

Value make_integer(int64_t integer, Label label) {
    Value value = made(Kind::integer, label);
    value.integer = integer;
    return value;
}

Value make_real(double real, Label label) {
    Value value = made(Kind::real, label);
    value.real = real;
    return value;
}

Value make_text(const Text& text) {
    Value value = made(Kind::text, text.label);
    value.text = text;
    return value;
}

Value make_text_like(const Value& origin, const Text& text) {
    Value value = make_text(text);
    value.safe = origin.safe;
    return value;
}

Label label_of(const Value& value) {
    switch (value.kind) {
        case Kind::text:
            return value.text.label;
        case Kind::list:
            return value.list->label;
        case Kind::dict:
            return value.dict->label;
        default:
            return value.label;
    }
}

std::string_view type_name(const Value& value) {
    switch (value.kind) {
        case Kind::undefined:
            return "Undefined";
        case Kind::none:
            return "None";
        case Kind::boolean:
            return "bool";
        case Kind::integer:
            return "int";
        case Kind::real:
            return "float";
        case Kind::text:
            return value.safe ? "Markup" : "str";
        case Kind::list:
            break;
        case Kind::dict:
            return "dict";
        case Kind::name_space:
            return "Namespace";
        case Kind::macro:
            return "Macro";
        case Kind::loop:
            return "LoopContext";
        case Kind::function:
            return "function";
        case Kind::cycler:
            return "Cycler";
        case Kind::joiner:
            return "Joiner";
    }
    switch (value.list->kind) {
        case ListKind::list:
            return "list";
        case ListKind::tuple:
            return "tuple";
        case ListKind::range:
            return "range";
        case ListKind::view:
            return value.list->view_name;
        case ListKind::generator:
            break;
    }
    return "generator";
}

bool is_true(const Value& value) {
    switch (value.kind) {
        case Kind::undefined:
        case Kind::none:
            return false;
        case Kind::boolean:
            return value.boolean;
        case Kind::integer:
            return value.integer != 0;
        case Kind::real:
            return value.real != 0;
        case Kind::text:
            return value.text.size != 0;
        case Kind::list:
            return value.list->size != 0 || value.list->kind == ListKind::generator;
        case Kind::dict:
            return value.dict->size != 0;
        case Kind::name_space:
        case Kind::macro:
        case Kind::loop:
        case Kind::function:
        case Kind::cycler:
        case Kind::joiner:
            break;
    }
    return true;
}

}  // namespace aerie::jinja
