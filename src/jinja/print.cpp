// Python's str and repr.
#include "jinja/print.h"

#include <charconv>
#include <cmath>
#include <cstdio>

#include "jinja/characters.h"
#include "jinja/evaluator.h"

namespace aerie::jinja {
namespace {

void repr(TextBuilder& out, Workspace& workspace, const Value& value);

std::string escaped(char32_t code) {
    char buffer[12];
    const char* format = code < 0x100 ? "\\x%02x" : code < 0x10000 ? "\\u%04x" : "\\U%08x";
    std::snprintf(buffer, sizeof(buffer), format, unsigned(code));
    return buffer;
}

void repr_text(TextBuilder& out, const Text& text) {
    const std::string_view bytes = text.view();
    const bool is_double = bytes.find('\'') != bytes.npos && bytes.find('"') == bytes.npos;
    const char quote = is_double ? '"' : '\'';
    out.add(std::string_view(&quote, 1), text.label);
    for (size_t at = 0; at < text.size;) {
        const size_t size = char_size(bytes[at]);
        const char32_t code = first_char(bytes.substr(at));
        if (code == char32_t(quote) || code == '\\') {
            out.add("\\", text.label_at(at));
            out.add(text.part(at, size));
        } else if (code == '\n' || code == '\r' || code == '\t') {
            out.add(code == '\n' ? "\\n" : code == '\r' ? "\\r" : "\\t", text.label_at(at));
        } else if (!is_printable(code)) {
            out.add(escaped(code), text.label);
        } else {
            out.add(text.part(at, size));
        }
        at += size;
    }
    out.add(std::string_view(&quote, 1), text.label);
}

void repr_items(TextBuilder& out, Workspace& workspace, const List& list) {
    for (size_t i = 0; i < list.size; ++i) {
        if (i > 0) out.add(", ", list.label);
        repr(out, workspace, list.items[i]);
    }
}

void repr_range(TextBuilder& out, Workspace& workspace, const List& list) {
    const int64_t first = list.size > 0 ? list.items[0].integer : 0;
    int64_t step = 1, length = 0, end = 0;
    if ((list.size > 1 && __builtin_sub_overflow(list.items[1].integer, first, &step)) ||
        __builtin_mul_overflow(step, int64_t(list.size), &length) ||
        __builtin_add_overflow(first, length, &end)) {
        throw Fault("number of more than 64 bits");
    }
    out.add("range(", list.label);
    print(out, workspace, make_integer(first, list.label));
    out.add(", ", list.label);
    print(out, workspace, make_integer(end, list.label));
    if (step != 1) {
        out.add(", ", list.label);
        print(out, workspace, make_integer(step, list.label));
    }
    out.add(")", list.label);
}

void repr_list(TextBuilder& out, Workspace& workspace, const List& list) {
    switch (list.kind) {
        case ListKind::list:
            out.add("[", list.label);
            repr_items(out, workspace, list);
            return out.add("]", list.label);
        case ListKind::tuple:
            out.add("(", list.label);
            repr_items(out, workspace, list);
            return out.add(list.size == 1 ? ",)" : ")", list.label);
        case ListKind::range:
            return repr_range(out, workspace, list);
        case ListKind::view:
            out.add(list.view_name, list.label);
            out.add("([", list.label);
            repr_items(out, workspace, list);
            return out.add("])", list.label);
        case ListKind::generator:
            return out.add("<generator object>", list.label);
    }
}

void repr_dict(TextBuilder& out, Workspace& workspace, const Dict& dict) {
    out.add("{", dict.label);
    for (size_t i = 0; i < dict.size; ++i) {
        if (i > 0) out.add(", ", dict.label);
        repr(out, workspace, dict.entries[i].key);
        out.add(": ", dict.label);
        repr(out, workspace, dict.entries[i].value);
    }
    out.add("}", dict.label);
}

void repr(TextBuilder& out, Workspace& workspace, const Value& value) {
    workspace.touch(sizeof(Value));
    if (value.is(Kind::text)) {
        if (!value.safe) return repr_text(out, value.text);
        out.add("Markup(", value.text.label);
        repr_text(out, value.text);
        return out.add(")", value.text.label);
    }
    if (value.is(Kind::undefined)) return out.add("Undefined", value.label);
    print(out, workspace, value);
}

void print_macro(TextBuilder& out, Workspace& workspace, const Macro& macro) {
    const std::string& name = macro.statement->text;
    if (name.empty()) return out.add("<Macro anonymous>", kTemplate);
    out.add("<Macro ", kTemplate);
    repr(out, workspace, make_text(name));
    out.add(">", kTemplate);
}

}  // namespace

// The shortest digits that read back as the same number, in Python's layout.
std::string repr_of(double real) {
    if (!std::isfinite(real)) return std::isnan(real) ? "nan" : real < 0 ? "-inf" : "inf";
    char buffer[64];
    const auto write = [&](std::chars_format format) {
        return std::string(buffer,
                           std::to_chars(buffer, buffer + sizeof(buffer), real, format).ptr);
    };
    const std::string scientific = write(std::chars_format::scientific);
    const int exponent = std::stoi(scientific.substr(scientific.find('e') + 1));
    if (exponent < -4 || exponent >= 16) return scientific;
    const std::string fixed = write(std::chars_format::fixed);
    return fixed.find('.') == fixed.npos ? fixed + ".0" : fixed;
}

void print(TextBuilder& out, Workspace& workspace, const Value& value) {
    workspace.touch(sizeof(Value));
    switch (value.kind) {
        case Kind::undefined:
            return;
        case Kind::none:
            return out.add("None", value.label);
        case Kind::boolean:
            return out.add(value.boolean ? "True" : "False", value.label);
        case Kind::integer:
            return out.add(std::to_string(value.integer), value.label);
        case Kind::real:
            return out.add(repr_of(value.real), value.label);
        case Kind::text:
            return out.add(value.text);
        case Kind::list:
            return repr_list(out, workspace, *value.list);
        case Kind::dict:
            return repr_dict(out, workspace, *value.dict);
        case Kind::name_space:
            return out.add("<Namespace>", kTemplate);
        case Kind::macro:
            return print_macro(out, workspace, *value.macro);
        case Kind::loop:
            out.add("<LoopContext ", kTemplate);
            out.add(std::to_string(value.loop->at + 1) + "/", value.loop->label);
            out.add(std::to_string(value.loop->items.size()), value.loop->label);
            return out.add(">", kTemplate);
        case Kind::function:
        case Kind::cycler:
        case Kind::joiner:
            return out.add("<" + std::string(type_name(value)) + ">", kTemplate);
    }
}

Text to_repr(Workspace& workspace, const Value& value) {
    TextBuilder out(workspace);
    repr(out, workspace, value);
    return out.text();
}

Text to_text(Workspace& workspace, const Value& value) {
    if (value.is(Kind::text)) return value.text;
    TextBuilder out(workspace);
    print(out, workspace, value);
    return out.text();
}

}  // namespace aerie::jinja
