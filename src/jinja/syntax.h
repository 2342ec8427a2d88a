// A parsed template: statements and expressions. Chains (a + b + c, x|f|g) are flat, so only text
// that is nested makes nested expressions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace aerie::jinja {

struct Expression;

enum class Spread : uint8_t { no, items, entries };  // items: *value; entries: **value

struct Argument {
    std::string name;               // empty: by position
    std::vector<Expression> value;  // exactly one
    Spread spread = Spread::no;
};

enum class StepKind : uint8_t { attribute, item, slice, call, filter, test, test_not };

// One operation on a value: .name, [item], [start:stop:step], (arguments), |name, is name.
struct Step {
    StepKind kind = StepKind::attribute;
    uint32_t line = 0;
    std::string name;
    // A slice has three, with no value where none is written.
    std::vector<Argument> arguments;
};

enum class ExpressionKind : uint8_t {
    none,
    boolean,  // integer
    integer,
    real,
    string,       // text
    name,         // text
    list,         // parts
    tuple,        // parts
    dict,         // parts: key, value, key, value, ...
    negative,     // parts[0]
    positive,     // parts[0]
    logical_not,  // parts[0]
    logical_and,  // parts
    logical_or,   // parts
    chain,        // parts[0] ops[0] parts[1] ops[1] ...: arithmetic, from the left
    comparison,   // the same, comparing each with the next: == != < <= > >= in, not in
    concat,       // parts
    conditional,  // parts[0] if parts[1] else parts[2]; without else two
    steps,        // parts[0] and the steps on it; in a filter block without parts[0]
};

struct Expression {
    ExpressionKind kind = ExpressionKind::none;
    uint32_t line = 0;
    int64_t integer = 0;
    double real = 0;
    std::string text;
    std::vector<Expression> parts;
    std::vector<std::string> ops;
    std::vector<Step> steps;
};

struct Statement;
using Body = std::vector<Statement>;

enum class StatementKind : uint8_t {
    data,       // text
    print,      // expressions[0]
    for_loop,   // target, items[, condition]; bodies[0], else bodies[1]
    branch,     // one body per condition, and one more for else
    set,        // target, value
    set_block,  // target, filters (steps); bodies[0]
    macro,      // text (name), names (parameters), expressions (the last ones' defaults)
    call,       // expressions[0], which ends in a call; bodies[0] holds the macro `caller`
    filter,     // filters (steps); bodies[0]
    with,       // target, value, target, value, ...; bodies[0]
    plain,      // bodies[0] in place of the tag: {% generation %}
    stop,       // break
    next,       // continue
};

// The special names that the body of a macro reads without having set them. They ask for arguments
// that no parameter takes.
struct MacroNames {
    bool varargs = false, kwargs = false, caller = false;
};

struct Statement {
    StatementKind kind = StatementKind::data;
    uint32_t line = 0;
    bool recursive = false;   // for_loop
    MacroNames special = {};  // macro
    std::string text = {};
    std::vector<std::string> names = {};
    std::vector<Expression> expressions = {};
    std::vector<Body> bodies = {};
};

// `source` is normalised. Throws Error that names file and line.
Body parse(std::string_view source, const std::string& file);
// Throws such an Error for a filter or a test that does not exist.
void check_names(const Body& body, const std::string& file);

}  // namespace aerie::jinja
