// JSON through nlohmann's event parser, which is iterative: nesting costs no stack.
#include "io/json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "core/error.h"
#include "core/utf8.h"

namespace aerie {
namespace {

constexpr size_t kMaxDepth = 64;
// The parser takes about 20 ns per byte of a string or number: one of a file's size takes seconds.
constexpr size_t kLongest = size_t(16) << 20;

// Builds the value from events. Returning false stops the parser; `problem` then says why.
class Builder : public nlohmann::json_sax<nlohmann::json> {
  public:
    Builder(size_t max_values, std::span<JsonPart* const> parts)
        : max_values_(max_values), parts_(parts) {}

    bool null() override { return in_part() ? other() : add(Json()); }
    bool boolean(bool value) override { return in_part() ? other() : add(Json(value)); }
    bool number_integer(int64_t value) override {
        if (!in_part()) return add(Json(value));
        return hand([&] { part_->integer(value); }) && end_of_part();
    }
    bool number_unsigned(uint64_t value) override {
        if (value <= INT64_MAX) return number_integer(int64_t(value));
        return in_part() ? other() : add(Json(value));
    }
    bool number_float(double value, const std::string&) override {
        return in_part() ? other() : add(Json(value));
    }
    bool string(std::string& value) override {
        if (!in_part()) return add(Json(std::move(value)));
        return hand([&] { part_->string(value); }) && end_of_part();
    }
    bool binary(nlohmann::json::binary_t&) override { return stop("binary value"); }

    bool start_object(size_t) override { return open(false); }
    bool start_array(size_t) override { return open(true); }
    bool end_object() override { return close(); }
    bool end_array() override { return close(); }

    bool key(std::string& key) override {
        if (part_) return hand([&] { part_->key(key); });
        if (!open_.back().keys.insert(key).second) return stop("duplicate key " + in_quotes(key));
        open_.back().key = std::move(key);
        return true;
    }

    bool parse_error(size_t position, const std::string&,
                     const nlohmann::detail::exception& error) override {
        constexpr int kOutOfRange = 406;  // nlohmann's id for a number beyond a double
        if (error.id == kOutOfRange)
            return stop("a number is out of range at byte " + std::to_string(position));
        return stop("not JSON at byte " + std::to_string(position));
    }

    Json root;
    std::string problem;

  private:
    // An array or object that is not closed yet.
    struct Level {
        bool is_array = false;
        Json::Array elements;
        Json::Object members;
        std::string key;  // key of the member that is being read
        std::unordered_set<std::string> keys;
    };

    bool stop(std::string why) {
        problem = std::move(why);
        return false;
    }

    // Whether the value that begins belongs to a JsonPart; sets part_ if it is the outermost one.
    bool in_part() {
        if (part_) return true;
        if (open_.size() != 2 || open_[0].is_array || open_[1].is_array) return false;
        for (JsonPart* part : parts_) {
            if (open_[0].key == part->outer && open_[1].key == part->inner) part_ = part;
        }
        return part_;
    }

    bool other() {
        return hand([&] { part_->other(); }) && end_of_part();
    }

    // Lets the part take something; an Error that it throws ends the parse.
    template <typename Take>
    bool hand(const Take& take) {
        try {
            take();
        } catch (const Error& error) {
            return stop(error.what());
        }
        return true;
    }

    // Called after each value of a part; the outermost one ends it.
    bool end_of_part() {
        if (part_depth_ > 0) return true;
        part_ = nullptr;
        return add(Json());
    }

    bool open(bool is_array) {
        if (open_.size() + part_depth_ == kMaxDepth) {
            return stop("nested deeper than " + std::to_string(kMaxDepth));
        }
        if (in_part()) {
            ++part_depth_;
            return hand([&] { part_->open(is_array); });
        }
        open_.emplace_back().is_array = is_array;
        return true;
    }

    bool close() {
        if (part_) {
            --part_depth_;
            return hand([&] { part_->close(); }) && end_of_part();
        }
        Level done = std::move(open_.back());
        open_.pop_back();
        return add(done.is_array ? Json(std::move(done.elements)) : Json(std::move(done.members)));
    }

    bool add(Json value) {
        if (++values_ > max_values_) {
            return stop("more than " + std::to_string(max_values_) + " values");
        }
        if (open_.empty()) {
            root = std::move(value);
        } else if (Level& level = open_.back(); level.is_array) {
            level.elements.push_back(std::move(value));
        } else {
            level.members.emplace_back(std::move(level.key), std::move(value));
        }
        return true;
    }

    std::vector<Level> open_;
    size_t values_ = 0, max_values_;
    std::span<JsonPart* const> parts_;
    JsonPart* part_ = nullptr;  // the part that is being read; nullptr: none
    size_t part_depth_ = 0;     // arrays and objects that are open inside of it
};

// Offset of the first string or other value of more than kLongest bytes; npos: there is none. In
// text that is not JSON, the bytes between two quotes count as a string.
size_t long_value(std::string_view text) {
    size_t begin = 0;
    while (text.size() - begin > kLongest) {  // a shorter rest has no room for one
        const size_t quote = std::min(text.find('"', begin), text.size());
        const std::string_view before = text.substr(0, quote);
        for (size_t end; quote - begin > kLongest; begin = std::min(end + 1, quote)) {
            end = std::min(before.find_first_of(",:[]{} \t\r\n", begin), quote);
            if (end - begin > kLongest) return begin;
        }
        size_t end = quote, first;  // the quote that ends it, and the first backslash before that
        if (end == text.size()) break;
        do {
            end = std::min(text.find('"', end + 1), text.size());
            for (first = end; text[first - 1] == '\\';) --first;
        } while (end < text.size() && (end - first) % 2 > 0);
        if (end - quote - 1 > kLongest) return quote;
        begin = std::min(end + 1, text.size());
    }
    return text.npos;
}

void write_string(std::string& out, const std::string& text) {
    std::string clean;
    append_utf8(clean, text, true);
    out += '"';
    for (std::string_view rest = clean; !rest.empty();) {
        const std::string_view whole = rest;
        const char32_t code = take_char(rest);
        if (code == '"' || code == '\\') {
            out += '\\';
            out += char(code);
        } else if (code == '\n') {
            out += "\\n";
        } else if (is_control(code)) {  // even the ones that JSON allows: they may reach a terminal
            char escape[8];
            std::snprintf(escape, sizeof(escape), "\\u%04x", unsigned(code));
            out += escape;
        } else {
            out += whole.substr(0, whole.size() - rest.size());
        }
    }
    out += '"';
}

void write_number(std::string& out, auto value) {
    char buffer[32];
    const char* end = std::to_chars(buffer, buffer + sizeof(buffer), value).ptr;
    const std::string_view digits(buffer, size_t(end - buffer));
    out += digits;
    // A double stays a double when it is read again.
    const bool looks_whole = digits.find_first_of(".e") == std::string_view::npos;
    if (std::is_floating_point_v<decltype(value)> && looks_whole) out += ".0";
}

}  // namespace

void JsonPart::open(bool) {
    other();
}
void JsonPart::close() {}
void JsonPart::key(std::string_view) {}
void JsonPart::string(std::string_view) {
    other();
}
void JsonPart::integer(int64_t) {
    other();
}
void JsonPart::other() {
    throw Error(inner + " of " + outer + ": a value of another kind was expected");
}

Json Json::parse(std::string_view text, const std::string& source, std::span<JsonPart* const> parts,
                 size_t max_values) {
    // The parser skips a byte order mark, and would take a NUL for the end of the text.
    if (const size_t nul = text.find('\0'); nul != std::string_view::npos)
        throw Error(source + ": not JSON at byte " + std::to_string(nul + 1));
    if (const size_t begin = long_value(text); begin != std::string_view::npos)
        throw Error(source + (text[begin] == '"' ? ": string" : ": value") +
                    " of more than 16 MB at byte " + std::to_string(begin + 1));
    Builder builder(max_values, parts);
    if (!nlohmann::json::sax_parse(text.begin(), text.end(), &builder)) {
        throw Error(source + ": " + builder.problem);
    }
    return std::move(builder.root);
}

void Json::write(std::string& out) const {
    if (const bool* flag = boolean()) {
        out += *flag ? "true" : "false";
    } else if (const auto* whole = std::get_if<int64_t>(&value_)) {
        write_number(out, *whole);
    } else if (const auto* large = std::get_if<uint64_t>(&value_)) {
        write_number(out, *large);
    } else if (const auto* real = std::get_if<double>(&value_); real && std::isfinite(*real)) {
        write_number(out, *real);
    } else if (string()) {
        write_string(out, *string());
    } else if (array()) {
        char before = '[';
        for (const Json& element : *array()) {
            out += before;
            element.write(out);
            before = ',';
        }
        out += array()->empty() ? "[]" : "]";
    } else if (object()) {
        char before = '{';
        for (const auto& [key, value] : *object()) {
            out += before;
            write_string(out, key);
            out += ':';
            value.write(out);
            before = ',';
        }
        out += object()->empty() ? "{}" : "}";
    } else {
        out += "null";
    }
}

std::string Json::dump() const {
    std::string out;
    write(out);
    return out;
}

bool Json::is_number() const {
    return std::holds_alternative<int64_t>(value_) || std::holds_alternative<uint64_t>(value_) ||
           std::holds_alternative<double>(value_);
}

double Json::number() const {
    if (const auto* whole = std::get_if<int64_t>(&value_)) return double(*whole);
    if (const auto* large = std::get_if<uint64_t>(&value_)) return double(*large);
    if (const auto* real = std::get_if<double>(&value_)) return *real;
    return 0;
}

bool Json::integer(int64_t& value) const {
    if (const auto* whole = std::get_if<int64_t>(&value_)) {
        value = *whole;
        return true;
    }
    if (const auto* large = std::get_if<uint64_t>(&value_); large && *large <= INT64_MAX) {
        value = int64_t(*large);
        return true;
    }
    // 1e4 and 2048.0 are whole numbers too; beyond 2^53 a double no longer says which.
    const auto* real = std::get_if<double>(&value_);
    if (!real || std::abs(*real) > 9007199254740992.0 || *real != std::trunc(*real)) return false;
    value = int64_t(*real);
    return true;
}

const Json* Json::find(std::string_view key) const {
    const Object* members = object();
    if (!members) return nullptr;
    for (const auto& [name, value] : *members) {
        if (name == key) return &value;
    }
    return nullptr;
}

void Json::set(std::string key, Json value) {
    if (is_null()) value_ = Object();
    std::get<Object>(value_).emplace_back(std::move(key), std::move(value));
}

}  // namespace aerie
