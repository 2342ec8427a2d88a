// Looks built-ins up by name, and binds arguments to their parameters.
#include "jinja/builtins.h"

#include <unordered_map>

#include "core/utf8.h"
#include "jinja/print.h"

namespace aerie::jinja {
namespace {

using Table = std::unordered_map<std::string_view, const Builtin*>;

Table table_of(std::initializer_list<const Builtins*> parts) {
    Table table;
    for (const Builtins* part : parts) {
        for (const Builtin& builtin : *part) table.emplace(builtin.name, &builtin);
    }
    return table;
}

}  // namespace

const Builtin* find_filter(std::string_view name) {
    static const Table table =
        table_of({&text_filters(), &list_filters(), &choosing_filters(), &number_filters()});
    const auto found = table.find(name);
    return found == table.end() ? nullptr : found->second;
}

const Builtin* find_text_method(std::string_view name) {
    static const Table table = table_of({&text_methods(), &text_questions()});
    const auto found = table.find(name);
    return found == table.end() ? nullptr : found->second;
}

Value run(const Builtin& builtin, Evaluator& evaluator, const Value& self,
          const Arguments& arguments) {
    evaluator.workspace().step();
    Call call{evaluator,    evaluator.workspace(),
              builtin.name, self,
              arguments,    std::vector<const Value*>(builtin.parameters.size(), nullptr)};
    if (builtin.takes_any) return builtin.run(call);
    if (arguments.positional.size() > call.bound.size()) call.fail("too many arguments");
    for (size_t i = 0; i < arguments.positional.size(); ++i) {
        call.bound[i] = &arguments.positional[i];
    }
    for (const Named& argument : arguments.named) {
        size_t at = 0;
        while (at < call.bound.size() && builtin.parameters[at] != argument.name) ++at;
        if (at == call.bound.size()) call.fail("no argument " + in_quotes(argument.name));
        if (call.bound[at]) call.fail("argument " + in_quotes(argument.name) + " twice");
        call.bound[at] = &argument.value;
    }
    return builtin.run(call);
}

void Call::fail(const std::string& why) const {
    throw Fault(std::string(name) + ": " + why);
}

const Value& Call::needed(size_t at) const {
    if (!bound[at]) fail("argument missing");
    return *bound[at];
}

int64_t Call::whole(size_t at, int64_t otherwise) const {
    return optional_whole(at).value_or(otherwise);
}

std::optional<int64_t> Call::optional_whole(size_t at) const {
    const Value* value = bound[at];
    if (!value || value->is(Kind::none)) return std::nullopt;
    if (!value->is_whole()) fail("a whole number is needed, not " + std::string(type_name(*value)));
    return value->whole();
}

bool Call::flag(size_t at, bool otherwise) const {
    return bound[at] ? is_true(*bound[at]) : otherwise;
}

Text Call::needed_text(size_t at) const {
    const Value& value = needed(at);
    if (!value.is(Kind::text)) fail("a string is needed, not " + std::string(type_name(value)));
    return value.text;
}

Text Call::text(size_t at, std::string_view otherwise) const {
    return bound[at] ? needed_text(at) : text_of(otherwise);
}

std::optional<std::string_view> Call::optional_text(size_t at) const {
    if (!bound[at] || bound[at]->is(Kind::none)) return std::nullopt;
    return needed_text(at).view();
}

Text Call::own_text() const {
    return to_text(workspace, self);
}

}  // namespace aerie::jinja
