// Turns the caller's variables into values. Their texts are not copied.
#include <algorithm>

#include "core/utf8.h"
#include "jinja/evaluator.h"

namespace aerie::jinja {
namespace {

void check_depth(size_t depth) {
    if (depth > kMaxDepth) {
        throw Fault("variables nested deeper than " + std::to_string(kMaxDepth));
    }
}

}  // namespace

Evaluator::Evaluator(const Variable::Object& variables, const std::tm& now) : now_(now) {
    scope_ = &new_frame(nullptr);
    for (const auto& [name, variable] : variables) {
        scope_->names.emplace_back(name, from_variable(variable, 0));
    }
}

// A text of the variables; bytes that are not UTF-8 are replaced.
Text Evaluator::from_bytes(std::string_view bytes, Label label) {
    if (bytes.size() > kMaxTextBytes) throw LongText();
    given_bytes_ += sizeof(Value) + bytes.size();
    workspace_.touch(bytes.size() / 8);
    if (is_utf8(bytes)) return text_of(bytes, label);
    std::string repaired;
    append_utf8(repaired, bytes, true);
    return workspace_.copy(repaired, label);
}

Value Evaluator::from_json(const Json& json, Label label, size_t depth) {
    check_depth(depth);
    if (json.string()) return make_text(from_bytes(*json.string(), label));
    if (json.boolean()) return make_boolean(*json.boolean(), label);
    if (json.is_number()) {
        const std::string digits = json.dump();
        int64_t whole = 0;
        const bool is_whole = digits.find_first_of(".en") == std::string::npos;
        if (is_whole && json.integer(whole)) return make_integer(whole, label);
        return make_real(json.number(), label);
    }
    if (json.array()) {
        std::vector<Value> items;
        for (const Json& item : *json.array()) items.push_back(from_json(item, label, depth + 1));
        return workspace_.list(items, ListKind::list, label);
    }
    if (json.object()) {
        std::vector<Entry> entries;
        for (const auto& [key, value] : *json.object()) {
            entries.push_back(
                {make_text(from_bytes(key, label)), from_json(value, label, depth + 1)});
        }
        return workspace_.unique_dict(entries, label);
    }
    return make_none(label);
}

Value Evaluator::from_variable(const Variable& variable, size_t depth) {
    check_depth(depth);
    const Label label = variable.label();
    if (const Json* json = std::get_if<Json>(&variable.value())) {
        return from_json(*json, label, depth);
    }
    if (const auto* list = std::get_if<Variable::List>(&variable.value())) {
        std::vector<Value> items;
        for (const Variable& item : *list) items.push_back(from_variable(item, depth + 1));
        return workspace_.list(items, ListKind::list, label);
    }
    std::vector<Entry> entries;
    for (const auto& [key, value] : std::get<Variable::Object>(variable.value())) {
        entries.push_back({make_text(from_bytes(key, label)), from_variable(value, depth + 1)});
    }
    return workspace_.unique_dict(entries, label);
}

}  // namespace aerie::jinja
