// The filters, tests, methods and functions of the language, as tables.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "jinja/evaluator.h"

namespace aerie::jinja {

struct Call {
    Evaluator& evaluator;
    Workspace& workspace;
    std::string_view name;  // for errors
    Value self;             // the value to filter or test, or the one that has the method
    const Arguments& arguments;
    std::vector<const Value*> bound;  // one per parameter; nullptr: not given

    const Value* given(size_t at) const { return bound[at]; }
    // The value of a parameter that must be given. These functions throw Fault if it is missing or
    // of another type.
    const Value& needed(size_t at) const;
    int64_t whole(size_t at, int64_t otherwise) const;
    bool flag(size_t at, bool otherwise) const;
    Text text(size_t at, std::string_view otherwise) const;
    Text needed_text(size_t at) const;
    std::optional<std::string_view> optional_text(size_t at) const;  // nullopt: not given, or None
    std::optional<int64_t> optional_whole(size_t at) const;
    // `self` as a string, whatever its type.
    Text own_text() const;
    [[noreturn]] void fail(const std::string& why) const;
};

struct Builtin {
    std::string_view name;
    Value (*run)(const Call&);
    std::vector<std::string_view> parameters = {};
    bool takes_any = false;  // run reads the arguments itself
};

// nullptr: there is none. The result of a test is a boolean.
const Builtin* find_filter(std::string_view name);
const Builtin* find_test(std::string_view name);
const Builtin* find_function(std::string_view name);
const Builtin* find_method(const Value& self, std::string_view name);
const Builtin* find_text_method(std::string_view name);

// Throws Fault if the arguments do not fit the parameters.
Value run(const Builtin& builtin, Evaluator& evaluator, const Value& self,
          const Arguments& arguments);

// The parts of the tables, one per file.
using Builtins = std::vector<Builtin>;
const Builtins& text_filters();
const Builtins& list_filters();
const Builtins& choosing_filters();
const Builtins& number_filters();
const Builtins& text_methods();
const Builtins& text_questions();

}  // namespace aerie::jinja
