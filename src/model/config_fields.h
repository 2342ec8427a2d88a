// Reading the fields of a configuration with their ranges.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "io/json.h"

namespace aerie {

// Typed access to the fields of one JSON object; every failure names file and field.
class Fields {
  public:
    Fields(const Json& json, std::string source) : json_(json), source_(std::move(source)) {
        if (!json.object()) throw Error(source_ + ": expected a JSON object");
    }

    [[noreturn]] void fail(const std::string& what) const { throw Error(source_ + ": " + what); }
    const Json& json() const { return json_; }

    // Absent and null are the same.
    const Json* find(const char* key) const {
        const Json* value = json_.find(key);
        return value && !value->is_null() ? value : nullptr;
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

    // Of an object within the object.
    Fields object(const char* key) const { return {*find(key), source_ + ": '" + key + "'"}; }

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

    const Json& json_;
    std::string source_;
};

}  // namespace aerie
