// Reads the fields of a configuration and checks their ranges.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/utf8.h"
#include "io/model_source.h"

namespace aerie {

// Typed access to the fields of one JSON object; every failure names file and field.
class Fields {
  public:
    Fields(const Json& json, std::string source) : json_(json), source_(std::move(source)) {
        if (!json.object()) throw Error(source_ + ": expected a JSON object");
    }
    // Errors name a field as its file does. `json` must outlive the fields.
    explicit Fields(const NamedJson& json) : Fields(json.json, json.file) { names_ = &json.names; }

    [[noreturn]] void fail(const std::string& what, Cause cause = Cause::unknown) const {
        throw Error(source_ + ": " + as_in_file(what), cause);
    }
    const Json& json() const { return json_; }

    // A member that the object lacks is looked up in `defaults`, which must outlive the fields.
    void use_defaults(const Json& defaults) { defaults_ = &defaults; }

    // Absent and null are the same.
    const Json* find(const char* key) const {
        for (const Json* from : {&json_, defaults_})
            if (const Json* value = from ? from->find(key) : nullptr; value && !value->is_null())
                return value;
        return nullptr;
    }

    int integer(const char* key, int low, int high, std::optional<int> fallback = {}) const {
        const Json* value = find(key);
        if (!value && fallback) return *fallback;
        if (!value) fail(std::string("'") + key + "' is missing");
        int64_t number = 0;
        if (!value->integer(number) || number < low || number > high)
            fail(std::string("'") + key + "' must be " +
                 (low == high ? std::to_string(low)
                              : "a whole number from " + std::to_string(low) + " to " +
                                    std::to_string(high)));
        return int(number);
    }

    std::optional<double> number(const char* key, double low, double high) const {
        const Json* value = find(key);
        if (!value) return {};
        const double number = value->number();
        if (!value->is_number() || !(number >= low && number <= high))
            fail(std::string("'") + key + "' must be a number from " + text(low) + " to " +
                 text(high));
        return number;
    }

    bool boolean(const char* key, bool fallback) const {
        const Json* value = find(key);
        if (!value) return fallback;
        if (!value->boolean()) fail(std::string("'") + key + "' must be true or false");
        return *value->boolean();
    }

    std::string string(const char* key, const std::string& fallback) const {
        const Json* value = find(key);
        if (!value) return fallback;
        if (!value->string()) fail(std::string("'") + key + "' must be a string");
        return *value->string();
    }

    // The fields of an object within the object.
    Fields object(const char* key) const {
        Fields inner(*find(key), source_ + ": " + as_in_file(in_quotes(key)));
        inner.names_ = names_;
        return inner;
    }

    // A whole number, or a list of `layers` equal ones if there are at least two layers: some files
    // repeat for each layer what all layers share.
    int layer_integer(const char* key, int low, int high, int layers,
                      std::optional<int> fallback = {}) const {
        const Json* value = find(key);
        if (!value || !value->array() || layers < 2) return integer(key, low, high, fallback);
        const Json::Array& list = *value->array();
        if (list.empty() || list.size() != size_t(layers))
            fail(in_quotes(key) + " has " + std::to_string(list.size()) + " entries for " +
                 std::to_string(layers) + " layers");
        int64_t first = 0, other = 0;
        for (const Json& item : list) {
            if (!item.integer(other) || other < low || other > high)
                fail(in_quotes(key) + " must hold whole numbers from " + std::to_string(low) +
                     " to " + std::to_string(high));
            if (&item == &list.front()) first = other;
            if (other != first)
                fail(in_quotes(key) + " is not the same for all layers; that is not implemented");
        }
        return int(first);
    }

    // One id or a list of ids.
    std::vector<int> ids(const char* key, int vocab) const {
        std::vector<int> result;
        const Json* value = find(key);
        if (!value) return result;
        const auto add = [&](const Json& item) {
            int64_t id = 0;
            if (!item.integer(id) || id < 0 || id >= vocab)
                fail(std::string("'") + key + "' must hold token ids below " +
                     std::to_string(vocab));
            result.push_back(int(id));
        };
        if (value->array() && value->array()->size() <= 64)
            for (const Json& item : *value->array()) add(item);
        else
            add(*value);
        return result;
    }

  private:
    static std::string text(double value) {
        std::string digits = std::to_string(value);
        digits.erase(digits.find_last_not_of('0') + 1);
        if (digits.back() == '.') digits.pop_back();
        return digits;
    }

    // Replaces names of members in quotes by the names that the file has for them.
    std::string as_in_file(std::string text) const {
        if (!names_) return text;
        for (const auto& [ours, theirs] : *names_)
            for (size_t at = 0; (at = text.find(in_quotes(ours), at)) != text.npos;) {
                text.replace(at, ours.size() + 2, in_quotes(theirs));
                at += theirs.size() + 2;
            }
        return text;
    }

    const Json& json_;
    std::string source_;
    const std::map<std::string, std::string>* names_ = nullptr;  // nullptr: names as in the JSON
    const Json* defaults_ = nullptr;
};

}  // namespace aerie
