// JSON through nlohmann's event parser, which is iterative: nesting costs no stack.
#include "io/json.h"

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

// Builds the value from events. Returning false stops the parser; `problem` then says why.
class Builder : public nlohmann::json_sax<nlohmann::json> {
  public:
    explicit Builder(size_t max_values) : max_values_(max_values) {}

    bool null() override { return add(Json()); }
    bool boolean(bool value) override { return add(Json(value)); }
    bool number_integer(int64_t value) override { return add(Json(value)); }
    bool number_unsigned(uint64_t value) override {
        return value <= INT64_MAX ? add(Json(int64_t(value))) : add(Json(value));
    }
    bool number_float(double value, const std::string&) override { return add(Json(value)); }
    bool string(std::string& value) override { return add(Json(std::move(value))); }
    bool binary(nlohmann::json::binary_t&) override { return stop("binary value"); }

    bool start_object(size_t) override { return open(false); }
    bool start_array(size_t) override { return open(true); }
    bool end_object() override { return close(); }
    bool end_array() override { return close(); }

    bool key(std::string& key) override {
        if (!open_.back().keys.insert(key).second) return stop("duplicate key " + in_quotes(key));
        open_.back().key = std::move(key);
        return true;
    }

    bool parse_error(size_t position, const std::string&,
                     const nlohmann::detail::exception&) override {
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
        std::string key;  // of the member being read
        std::unordered_set<std::string> keys;
    };

    bool stop(std::string why) {
        problem = std::move(why);
        return false;
    }

    bool open(bool is_array) {
        if (open_.size() == kMaxDepth) {
            return stop("nested deeper than " + std::to_string(kMaxDepth));
        }
        open_.emplace_back().is_array = is_array;
        return true;
    }

    bool close() {
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
};

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
        } else if (is_control(code)) {  // also those that JSON allows: they may reach a terminal
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
    // A double stays one when it is read again.
    const bool looks_whole = digits.find_first_of(".e") == std::string_view::npos;
    if (std::is_floating_point_v<decltype(value)> && looks_whole) out += ".0";
}

}  // namespace

Json Json::parse(std::string_view text, const std::string& source, size_t max_values) {
    // The parser skips the one and takes the other for the end of the text.
    if (text.starts_with("\xEF\xBB\xBF")) throw Error(source + ": begins with a byte order mark");
    if (const size_t nul = text.find('\0'); nul != std::string_view::npos)
        throw Error(source + ": not JSON at byte " + std::to_string(nul + 1));
    Builder builder(max_values);
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
