// Arithmetic by Python's rules on integers of 64 bits, floats, strings and lists.
#include <algorithm>
#include <cmath>

#include "jinja/format.h"
#include "jinja/operators.h"
#include "jinja/safe_text.h"

namespace aerie::jinja {
namespace {

[[noreturn]] void refuse(std::string_view op, const Value& a, const Value& b) {
    throw Fault("cannot compute " + std::string(type_name(a)) + " " + std::string(op) + " " +
                std::string(type_name(b)));
}

void in_range(bool overflows) {
    if (overflows) throw Fault("number of more than 64 bits");
}

// The quotient, rounded down as in Python.
int64_t floor_quotient(int64_t a, int64_t b) {
    if (b == 0) throw Fault("division by zero");
    in_range(a == INT64_MIN && b == -1);
    return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

int64_t floor_remainder(int64_t a, int64_t b) {
    const int64_t rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

int64_t power(int64_t base, int64_t exponent) {
    int64_t result = 1;
    // Each round either is the last one, or squares a base that soon overflows.
    for (; exponent > 0; exponent >>= 1) {
        int64_t product = result;
        if (exponent & 1) in_range(__builtin_mul_overflow(result, base, &product));
        result = product;
        if (exponent > 1) in_range(__builtin_mul_overflow(base, base, &product));
        base = product;
    }
    return result;
}

Value whole_result(std::string_view op, int64_t a, int64_t b, Label label) {
    int64_t result = 0;
    if (op == "+") {
        in_range(__builtin_add_overflow(a, b, &result));
    } else if (op == "-") {
        in_range(__builtin_sub_overflow(a, b, &result));
    } else if (op == "*") {
        in_range(__builtin_mul_overflow(a, b, &result));
    } else if (op == "//") {
        result = floor_quotient(a, b);
    } else if (op == "%") {
        result = b == -1 ? 0 : floor_remainder(a, b);
    } else if (op == "**" && b >= 0) {
        result = power(a, b);
    } else {
        return make_real(op == "/" ? double(a) / double(b) : std::pow(double(a), double(b)), label);
    }
    return make_integer(result, label);
}

double floor_remainder(double a, double b) {
    const double rest = std::fmod(a, b);
    if (rest == 0) return std::copysign(0.0, b);
    return (rest < 0) != (b < 0) ? rest + b : rest;
}

double real_result(std::string_view op, double a, double b) {
    if (op == "+") return a + b;
    if (op == "-") return a - b;
    if (op == "*") return a * b;
    if (op == "/") return a / b;
    if (op == "//") return std::floor(a / b);
    if (op == "%") return floor_remainder(a, b);
    if (a < 0 && b != std::trunc(b)) throw Fault("root of a negative number");
    return std::pow(a, b);
}

Value of_numbers(std::string_view op, const Value& a, const Value& b) {
    const Label label = std::max(a.label, b.label);
    const bool divides = op == "/" || op == "//" || op == "%";
    if (divides && b.number() == 0) throw Fault("division by zero");
    if (op == "**" && a.number() == 0 && b.number() < 0) throw Fault("division by zero");
    if (a.is_whole() && b.is_whole()) return whole_result(op, a.whole(), b.whole(), label);
    return make_real(real_result(op, a.number(), b.number()), label);
}

Value sum_of_lists(Workspace& workspace, const List& a, const List& b) {
    std::vector<Value> items;
    items.reserve(a.size + size_t(b.size));
    items.insert(items.end(), a.span().begin(), a.span().end());
    items.insert(items.end(), b.span().begin(), b.span().end());
    return workspace.list(items, a.kind, std::max(a.label, b.label));
}

Value repeated(Workspace& workspace, const Value& value, const Value& times) {
    const int64_t count = std::max<int64_t>(times.whole(), 0);
    if (value.is(Kind::text)) {
        TextBuilder text(workspace);
        // An empty text needs no rounds.
        for (int64_t i = 0; i < count && value.text.size > 0; ++i) text.add(value.text);
        return make_text_like(value, text.text());
    }
    std::vector<Value> items;
    for (int64_t i = 0; i < count && value.list->size > 0; ++i) {
        workspace.touch(value.list->size * sizeof(Value));
        workspace.add_item(items.size() + value.list->size - 1);
        items.insert(items.end(), value.list->span().begin(), value.list->span().end());
    }
    return workspace.list(items, value.list->kind, std::max(value.list->label, times.label));
}

bool is_sequence(const Value& value) {
    return value.is(Kind::text) || (value.is(Kind::list) && value.list->kind <= ListKind::tuple);
}

}  // namespace

Value arithmetic(Workspace& workspace, std::string_view op, const Value& a, const Value& b) {
    if (a.is_number() && b.is_number()) return of_numbers(op, a, b);
    if (op == "%" && a.is(Kind::text)) return percent_format(workspace, a, b);
    for (const Value* value : {&a, &b}) {
        if (!value->is(Kind::undefined)) continue;
        throw Fault("'" + std::string(value->text.view()) + "' is undefined");
    }
    if (op == "+" && a.is(Kind::text) && b.is(Kind::text) && (a.safe || b.safe)) {
        return safe_sum(workspace, a, b);
    }
    if (op == "+" && a.is(Kind::text) && b.is(Kind::text)) {
        TextBuilder text(workspace);
        text.add(a.text);
        text.add(b.text);
        return make_text(text.text());
    }
    if (op == "+" && is_sequence(a) && is_sequence(b) && type_name(a) == type_name(b)) {
        return sum_of_lists(workspace, *a.list, *b.list);
    }
    if (op == "*" && is_sequence(a) && b.is_whole()) return repeated(workspace, a, b);
    if (op == "*" && is_sequence(b) && a.is_whole()) return repeated(workspace, b, a);
    refuse(op, a, b);
}

Value negative(const Value& value) {
    if (value.is(Kind::real)) return make_real(-value.real, value.label);
    if (!value.is_whole()) throw Fault("minus of " + std::string(type_name(value)));
    int64_t result = 0;
    in_range(__builtin_sub_overflow(int64_t(0), value.whole(), &result));
    return make_integer(result, value.label);
}

}  // namespace aerie::jinja
