// strftime without the system's: the same everywhere, and nothing but the usual letters.
#include <array>
#include <cstdio>

#include "text/jinja/format.h"

namespace aerie::jinja {
namespace {

constexpr std::array<std::string_view, 7> kDays = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                                   "Thursday", "Friday", "Saturday"};
constexpr std::array<std::string_view, 12> kMonths = {
    "January", "February", "March",     "April",   "May",      "June",
    "July",    "August",   "September", "October", "November", "December"};

std::string padded_number(int number, int width, char fill) {
    char buffer[32];
    std::snprintf(buffer, sizeof(buffer), fill == '0' ? "%0*d" : "%*d", fill ? width : 1, number);
    return buffer;
}

std::string day_name(const std::tm& time) {
    return std::string(kDays[size_t(time.tm_wday) % kDays.size()]);
}

std::string month_name(const std::tm& time) {
    return std::string(kMonths[size_t(time.tm_mon) % kMonths.size()]);
}

std::string expanded(std::string_view pattern, const std::tm& time);

// `unpadded`: as %-d.
std::string conversion(char letter, bool unpadded, const std::tm& time) {
    const char zero = unpadded ? '\0' : '0';
    const int hour = time.tm_hour % 12 == 0 ? 12 : time.tm_hour % 12;
    switch (letter) {
        case 'a':
            return day_name(time).substr(0, 3);
        case 'A':
            return day_name(time);
        case 'b':
        case 'h':
            return month_name(time).substr(0, 3);
        case 'B':
            return month_name(time);
        case 'd':
            return padded_number(time.tm_mday, 2, zero);
        case 'e':
            return padded_number(time.tm_mday, 2, unpadded ? '\0' : ' ');
        case 'H':
            return padded_number(time.tm_hour, 2, zero);
        case 'I':
            return padded_number(hour, 2, zero);
        case 'j':
            return padded_number(time.tm_yday + 1, 3, zero);
        case 'm':
            return padded_number(time.tm_mon + 1, 2, zero);
        case 'M':
            return padded_number(time.tm_min, 2, zero);
        case 'S':
            return padded_number(time.tm_sec, 2, zero);
        case 'f':
            return "000000";
        case 'w':
            return padded_number(time.tm_wday, 1, zero);
        case 'u':
            return padded_number(time.tm_wday == 0 ? 7 : time.tm_wday, 1, zero);
        case 'y':
            return padded_number((time.tm_year + 1900) % 100, 2, zero);
        case 'Y':
            return padded_number(time.tm_year + 1900, 1, zero);
        case 'p':
            return time.tm_hour < 12 ? "AM" : "PM";
        case 'Z':
        case 'z':
            return "";
        case 'n':
            return "\n";
        case 't':
            return "\t";
        case '%':
            return "%";
        case 'F':
            return expanded("%Y-%m-%d", time);
        case 'T':
        case 'X':
            return expanded("%H:%M:%S", time);
        case 'R':
            return expanded("%H:%M", time);
        case 'D':
        case 'x':
            return expanded("%m/%d/%y", time);
        case 'c':
            return expanded("%a %b %e %H:%M:%S %Y", time);
        default:
            throw Fault("strftime_now with an unknown letter after %");
    }
}

std::string expanded(std::string_view pattern, const std::tm& time) {
    std::string text;
    for (size_t i = 0; i < pattern.size(); ++i) {
        if (pattern[i] != '%') {
            text += pattern[i];
            continue;
        }
        const bool unpadded = pattern.substr(i + 1).starts_with('-');
        i += unpadded ? 2 : 1;
        if (i >= pattern.size()) throw Fault("strftime_now with nothing after %");
        text += conversion(pattern[i], unpadded, time);
    }
    return text;
}

}  // namespace

Text time_text(Workspace& workspace, const Text& pattern, const std::tm& time) {
    constexpr size_t kMaxPattern = 1000;
    if (pattern.size > kMaxPattern) throw Fault("strftime_now with a pattern of over 1,000 bytes");
    return workspace.copy(expanded(pattern.view(), time), pattern.label);
}

}  // namespace aerie::jinja
