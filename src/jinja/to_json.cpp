// JSON as Python's json.dumps writes it. Brackets and quotes around a value have the label of the
// value.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "jinja/characters.h"
#include "jinja/operators.h"
#include "jinja/print.h"

namespace aerie::jinja {
namespace {

class Writer {
  public:
    Writer(Workspace& workspace, const JsonStyle& style)
        : workspace_(workspace), style_(style), out_(workspace) {}

    void value(const Value& value);
    Text text() { return out_.text(); }

  private:
    void string(const Text& text);
    void escape(char32_t code, Label label);
    void list(const List& list);
    void dict(const Dict& dict);
    void key(const Value& key);
    void between(const Text& separator, Label label);
    void new_line(Label label);

    Workspace& workspace_;
    const JsonStyle& style_;
    TextBuilder out_;
    size_t level_ = 0;
};

// Adds a separator. It is trusted no more than the data in which it stands.
void Writer::between(const Text& separator, Label label) {
    out_.add(separator.view(), std::max(separator.label, label));
}

void Writer::new_line(Label label) {
    if (!style_.indented) return;
    out_.add("\n", label);
    for (size_t i = 0; i < level_; ++i) between(style_.indent, label);
}

void Writer::escape(char32_t code, Label label) {
    constexpr std::string_view kNamed = "\"\\\n\r\t\b\f", kNames = "\"\\nrtbf";
    const size_t at = code < 0x80 ? kNamed.find(char(code)) : kNamed.npos;
    if (at != kNamed.npos) {
        out_.add("\\", label);
        return out_.add(kNames.substr(at, 1), label);
    }
    char buffer[16];
    if (code < 0x10000) {
        std::snprintf(buffer, sizeof(buffer), "\\u%04x", unsigned(code));
    } else {
        std::snprintf(buffer, sizeof(buffer), "\\u%04x\\u%04x", unsigned(0xD7C0 + (code >> 10)),
                      unsigned(0xDC00 + (code & 0x3FF)));
    }
    out_.add(buffer, label);
}

void Writer::string(const Text& text) {
    out_.add("\"", text.label);
    size_t plain = 0;  // start of the bytes that need no escape
    for (size_t at = 0; at < text.size;) {
        const size_t size = char_size(text.data[at]);
        const char32_t code = first_char(text.view().substr(at));
        if (code == '"' || code == '\\' || code < 0x20 || (style_.ascii && code >= 0x7F)) {
            out_.add(text.part(plain, at - plain));
            escape(code, text.labels ? *std::max_element(text.labels + at, text.labels + at + size)
                                     : text.label);
            plain = at + size;
        }
        at += size;
    }
    out_.add(text.part(plain, text.size - plain));
    out_.add("\"", text.label);
}

void Writer::list(const List& list) {
    if (list.kind > ListKind::tuple) {
        throw Fault("tojson of what is no list");
    }
    out_.add("[", list.label);
    ++level_;
    for (size_t i = 0; i < list.size; ++i) {
        if (i > 0) between(style_.comma, list.label);
        new_line(list.label);
        value(list.items[i]);
    }
    --level_;
    if (list.size > 0) new_line(list.label);
    out_.add("]", list.label);
}

void Writer::key(const Value& key) {
    if (key.is(Kind::text)) return string(key.text);
    if (!key.is_number() && !key.is(Kind::none)) throw Fault("tojson of a dict with such a key");
    out_.add("\"", key.label);
    value(key);
    out_.add("\"", key.label);
}

void Writer::dict(const Dict& dict) {
    std::vector<const Entry*> entries;
    for (const Entry& entry : dict.span()) entries.push_back(&entry);
    if (style_.sorted) {
        std::stable_sort(entries.begin(), entries.end(), [&](const Entry* a, const Entry* b) {
            return compare(workspace_, a->key, b->key) < 0;
        });
    }
    out_.add("{", dict.label);
    ++level_;
    for (size_t i = 0; i < entries.size(); ++i) {
        if (i > 0) between(style_.comma, dict.label);
        new_line(dict.label);
        key(entries[i]->key);
        between(style_.colon, dict.label);
        value(entries[i]->value);
    }
    --level_;
    if (dict.size > 0) new_line(dict.label);
    out_.add("}", dict.label);
}

void Writer::value(const Value& value) {
    workspace_.touch(sizeof(Value));
    switch (value.kind) {
        case Kind::none:
            return out_.add("null", value.label);
        case Kind::boolean:
            return out_.add(value.boolean ? "true" : "false", value.label);
        case Kind::integer:
            return out_.add(std::to_string(value.integer), value.label);
        case Kind::real:
            if (std::isfinite(value.real)) return out_.add(repr_of(value.real), value.label);
            return out_.add(std::isnan(value.real) ? "NaN"
                            : value.real < 0       ? "-Infinity"
                                                   : "Infinity",
                            value.label);
        case Kind::text:
            return string(value.text);
        case Kind::list:
            return list(*value.list);
        case Kind::dict:
            return dict(*value.dict);
        default:
            throw Fault("tojson of " + std::string(type_name(value)));
    }
}

}  // namespace

Text to_json(Workspace& workspace, const Value& value, const JsonStyle& style) {
    Writer writer(workspace, style);
    writer.value(value);
    return writer.text();
}

}  // namespace aerie::jinja
