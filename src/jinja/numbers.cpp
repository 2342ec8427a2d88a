// Filters that return a number.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "jinja/builtins.h"
#include "jinja/operators.h"
#include "jinja/print.h"
#include "jinja/strings.h"

namespace aerie::jinja {
namespace {

constexpr size_t kBytesPerDigit = 4;  // the cost of reading a digit

// The value of a text as Python's float() reads it, except for underscores.
std::optional<double> real_of(std::string_view digits) {
    if (digits.starts_with('+')) digits.remove_prefix(1);
    const bool has_sign = digits.starts_with('-');
    if (digits.substr(has_sign ? 1 : 0).starts_with('-')) return std::nullopt;
    double value = 0;
    const char* end = digits.data() + digits.size();
    const auto [stop, error] = std::from_chars(digits.data(), end, value);
    if (stop != end || digits.empty()) return std::nullopt;
    if (error == std::errc::result_out_of_range) {
        const bool is_tiny = digits.find("e-") != digits.npos || digits.find("E-") != digits.npos;
        value = is_tiny ? 0 : HUGE_VAL;
        return has_sign ? -value : value;
    }
    return error == std::errc() ? std::optional(value) : std::nullopt;
}

std::optional<int64_t> whole_of(const Call& call, std::string_view digits, int64_t base) {
    if (base < 2 || base > 36) call.fail("base from 2 to 36");
    call.workspace.touch(kBytesPerDigit * digits.size());
    std::string without;  // the digits without underscores between them
    for (size_t i = 0; i < digits.size(); ++i) {
        const bool is_between = i > 0 && i + 1 < digits.size() && digits[i - 1] != '_';
        if (digits[i] != '_' || !is_between) without += digits[i];
    }
    digits = without;
    if (digits.starts_with('+') && !digits.substr(1).starts_with('-')) digits.remove_prefix(1);
    const char kind = digits.size() > 2 && digits[0] == '0' ? char(digits[1] | 0x20) : '\0';
    const bool has_prefix =
        (kind == 'x' && base == 16) || (kind == 'o' && base == 8) || (kind == 'b' && base == 2);
    if (has_prefix) digits.remove_prefix(2);
    int64_t value = 0;
    const char* end = digits.data() + digits.size();
    const auto [stop, error] = std::from_chars(digits.data(), end, value, int(base));
    if (stop != end || digits.empty()) return std::nullopt;
    if (error == std::errc::result_out_of_range) call.fail("number of more than 64 bits");
    return error == std::errc() ? std::optional(value) : std::nullopt;
}

int64_t cut_to_whole(const Call& call, double value) {
    if (!(std::abs(value) < 9.2e18)) call.fail("number of more than 64 bits");
    return int64_t(value);
}

Value given_or(const Call& call, const Value& otherwise) {
    return call.given(0) ? *call.given(0) : otherwise;
}

Value as_whole(const Call& call) {
    const Value& self = call.self;
    const Label label = label_of(self);
    if (self.is_whole()) return make_integer(self.whole(), label);
    if (self.is(Kind::real)) {
        if (std::isnan(self.real)) return given_or(call, make_integer(0));
        return make_integer(cut_to_whole(call, self.real), label);
    }
    if (!self.is(Kind::text)) return given_or(call, make_integer(0));
    const Text digits = strip(call.workspace, self.text, std::nullopt, true, true);
    if (const auto whole = whole_of(call, digits.view(), call.whole(1, 10))) {
        return make_integer(*whole, label);
    }
    const std::optional<double> real = real_of(digits.view());
    if (!real || std::isnan(*real)) return given_or(call, make_integer(0));
    return make_integer(cut_to_whole(call, *real), label);
}

Value as_real(const Call& call) {
    if (call.self.is_number()) return make_real(call.self.number(), call.self.label);
    if (!call.self.is(Kind::text)) return given_or(call, make_real(0));
    call.workspace.touch(kBytesPerDigit * call.self.text.size);
    const Text digits = strip(call.workspace, call.self.text, std::nullopt, true, true);
    const std::optional<double> real = real_of(digits.view());
    return real ? make_real(*real, call.self.text.label) : given_or(call, make_real(0));
}

Value absolute(const Call& call) {
    if (!call.self.is_number()) call.fail("of " + std::string(type_name(call.self)));
    const bool is_minus = call.self.number() < 0;
    if (call.self.is(Kind::real)) return make_real(std::abs(call.self.real), call.self.label);
    return is_minus ? negative(call.self) : make_integer(call.self.whole(), call.self.label);
}

// Rounds the exact binary value, and a tie to an even last digit, as Python does.
double rounded_to(double value, int places) {
    char buffer[512];
    char* const end =
        std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::fixed, places).ptr;
    std::from_chars(buffer, end, value);
    return value;
}

Value round(const Call& call) {
    if (!call.self.is_number()) call.fail("of " + std::string(type_name(call.self)));
    const int64_t places = call.whole(0, 0);
    if (places < 0 || places > 100) call.fail("precision from 0 to 100");
    const std::string_view method = call.text(1, "common").view();
    const double value = call.self.number(), scale = std::pow(10.0, double(places));
    if (method == "ceil") return make_real(std::ceil(value * scale) / scale, call.self.label);
    if (method == "floor") return make_real(std::floor(value * scale) / scale, call.self.label);
    if (method != "common") call.fail("method 'common', 'ceil' or 'floor'");
    if (call.self.is_whole()) return make_integer(call.self.whole(), call.self.label);
    if (!std::isfinite(value)) return call.self;
    return make_real(rounded_to(value, int(places)), call.self.label);
}

// The number that Python's float() makes of the value.
double needed_real(const Call& call) {
    if (call.self.is_number()) return call.self.number();
    if (!call.self.is(Kind::text)) call.fail("of " + std::string(type_name(call.self)));
    call.workspace.touch(kBytesPerDigit * call.self.text.size);
    const Text digits = strip(call.workspace, call.self.text, std::nullopt, true, true);
    const std::optional<double> real = real_of(digits.view());
    if (!real) call.fail("of what is no number");
    return *real;
}

std::string with_places(double value, int places) {
    char buffer[512];  // a double has at most 309 digits before its point
    char* const end = buffer + sizeof(buffer);
    return {buffer, std::to_chars(buffer, end, value, std::chars_format::fixed, places).ptr};
}

Value file_size(const Call& call) {
    constexpr std::string_view kPrefixes = "kMGTPEZY";
    const bool binary = call.flag(0, false);
    const double bytes = needed_real(call), base = binary ? 1024 : 1000;
    const auto made = [&](const std::string& text) {
        return make_text(call.workspace.copy(text, label_of(call.self)));
    };
    if (bytes == 1) return made("1 Byte");
    if (bytes < base) {
        const std::string whole = with_places(std::trunc(bytes), 0);
        return made((whole == "-0" ? "0" : whole) + " Bytes");
    }
    double unit = base;
    size_t at = 0;
    // The double nearest to 10^24 is below it, and Python compares with the whole number.
    const auto is_below = [&](double limit) {
        return limit == 1e24 ? bytes <= limit : bytes < limit;
    };
    while (at + 1 < kPrefixes.size() && !is_below(unit * base)) {
        unit *= base;
        ++at;
    }
    const char prefix = binary && at == 0 ? 'K' : kPrefixes[at];
    return made(with_places(base * bytes / (unit * base), 1) + " " + prefix +
                (binary ? "iB" : "B"));
}

}  // namespace

const Builtins& number_filters() {
    static const Builtins all = {
        {"int", as_whole, {"default", "base"}},
        {"float", as_real, {"default"}},
        {"abs", absolute},
        {"round", round, {"precision", "method"}},
        {"filesizeformat", file_size, {"binary"}},
    };
    return all;
}

}  // namespace aerie::jinja
