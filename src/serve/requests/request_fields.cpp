#include "serve/requests/request_fields.h"

#include <charconv>

#include "core/utf8.h"
#include "serve/requests/problem.h"

namespace aerie {

namespace {

constexpr size_t kMaxValues = 300'000;  // in a request; they take 20 MB at most

std::string shortest(double value) {
    char digits[32];
    return {digits, std::to_chars(digits, digits + sizeof(digits), value).ptr};
}

}  // namespace

Json parse_body(std::string_view text) {
    if (text.empty())
        throw bad_request("the request has no body: send JSON, with a Content-Length or in chunks",
                          "", "invalid_json");
    try {
        return Json::parse(text, "the request", kMaxValues);
    } catch (const Error& error) {
        throw bad_request(error.what(), "", "invalid_json");
    }
}

RequestFields::RequestFields(const Json& object, const std::string& path)
    : object_(object), path_(path) {
    if (!object.object())
        throw bad_request((path.empty() ? "the request" : path) + " must be an object", path,
                          "invalid_type");
}

std::string RequestFields::path(const std::string& name) const {
    constexpr size_t kMost = 64;
    const std::string shown = printable(name.substr(0, kMost));
    return path_.empty() ? shown : path_ + "." + shown;
}

const Json* RequestFields::take(const std::string& name) {
    taken_.insert(name);
    const Json* value = object_.find(name);
    return value && !value->is_null() ? value : nullptr;
}

std::optional<bool> RequestFields::flag(const std::string& name) {
    const Json* value = take(name);
    if (!value) return {};
    if (!value->boolean())
        throw bad_request(path(name) + " must be true or false", path(name), "invalid_type");
    return *value->boolean();
}

std::optional<std::string> RequestFields::text(const std::string& name) {
    const Json* value = take(name);
    if (!value) return {};
    if (!value->string())
        throw bad_request(path(name) + " must be a string", path(name), "invalid_type");
    return *value->string();
}

std::optional<int64_t> RequestFields::whole(const std::string& name, int64_t least, int64_t most) {
    const Json* value = take(name);
    if (!value) return {};
    int64_t number = 0;
    if (!value->integer(number) || number < least || number > most)
        throw bad_request(path(name) + " must be a whole number from " + std::to_string(least) +
                              " to " + std::to_string(most),
                          path(name), value->is_number() ? "invalid_value" : "invalid_type");
    return number;
}

std::optional<float> RequestFields::number(const std::string& name, double least, double most) {
    const Json* value = take(name);
    if (!value) return {};
    const double number = value->number();
    if (!value->is_number() || !(number >= least && number <= most))
        throw bad_request(
            path(name) + " must be a number from " + shortest(least) + " to " + shortest(most),
            path(name), value->is_number() ? "invalid_value" : "invalid_type");
    return float(number);
}

void RequestFields::ignore(std::initializer_list<const char*> names) {
    taken_.insert(names.begin(), names.end());
}

void RequestFields::only(const std::string& name, std::string_view json) {
    const Json* given = take(name);
    if (!given) return;
    if (json.empty()) throw not_supported(in_quotes(path(name)) + " is not supported", path(name));
    const Json value = Json::parse(json, name);
    const bool is_equal = value.is_number() && given->is_number()
                              ? value.number() == given->number()
                              : value.dump() == given->dump();
    if (!is_equal)
        throw not_supported(path(name) + ": only " + value.dump() + " is supported", path(name));
}

void RequestFields::rest(std::vector<std::string>& paths) const {
    constexpr size_t kMost = 100;  // a client may send as many as it likes
    for (const auto& [name, value] : *object_.object())
        if (paths.size() < kMost && !value.is_null() && !taken_.count(name))
            paths.push_back(path(name));
}

}  // namespace aerie
