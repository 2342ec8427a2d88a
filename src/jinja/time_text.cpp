// An strftime that does not depend on the system: everywhere like glibc's in the C locale, with its
// flags and widths.
#include <algorithm>
#include <array>
#include <optional>

#include "jinja/format.h"

namespace aerie::jinja {
namespace {

constexpr size_t kMaxFieldWidth = 1000;

constexpr std::array<std::string_view, 7> kDays = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                                   "Thursday", "Friday", "Saturday"};
constexpr std::array<std::string_view, 12> kMonths = {
    "January", "February", "March",     "April",   "May",      "June",
    "July",    "August",   "September", "October", "November", "December"};

// Flags, a width and a modifier may stand between % and the letter.
struct Layout {
    char pad = '\0';  // _ spaces, 0 zeros, - nothing; '\0': default of the letter
    bool upper = false, other_case = false;  // ^ and #
    size_t width = 0;
    char modifier = '\0';  // E or O: alternatives that the C locale does not have
};

std::string expanded(std::string_view pattern, const std::tm& time);

char upper(char c) {
    return c >= 'a' && c <= 'z' ? char(c - 'a' + 'A') : c;
}

char lower(char c) {
    return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c;
}

// Pads a text that is shorter than the width on its left.
std::string widened(std::string text, const Layout& layout) {
    const size_t missing = layout.width - std::min(layout.width, text.size());
    return std::string(missing, layout.pad == '0' ? '0' : ' ') + text;
}

std::string number(int value, size_t digits, Layout layout, char pad = '0') {
    std::string text = std::to_string(value < 0 ? -int64_t(value) : value);
    if (layout.pad == '\0') layout.pad = pad;
    const size_t size = std::max(digits, layout.width), used = text.size() + (value < 0);
    const size_t missing = layout.pad == '-' ? 0 : size - std::min(size, used);
    const std::string sign = value < 0 ? "-" : "";
    text = layout.pad == '_' ? std::string(missing, ' ') + sign + text
                             : sign + std::string(missing, '0') + text;
    return widened(text, layout);
}

std::string words(std::string_view text, const Layout& layout, bool small = false) {
    std::string cased(text);
    if (layout.upper) std::transform(cased.begin(), cased.end(), cased.begin(), upper);
    if (small) std::transform(cased.begin(), cased.end(), cased.begin(), lower);
    return widened(cased, layout);
}

// Names of days and months are capitalised, so # can only make them upper case.
std::string day_or_month(std::string_view name, Layout layout) {
    layout.upper = layout.upper || layout.other_case;
    return words(name, layout);
}

std::string half_of_day(const std::tm& time, const Layout& layout, bool small) {
    return words(time.tm_hour < 12 ? "AM" : "PM", layout, small || layout.other_case);
}

// A week of ISO 8601 begins on a Monday, and the first one contains the year's first Thursday.
struct IsoWeek {
    int year = 0, week = 0;
};

int days_of_year(int year) {
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 366 : 365;
}

// Days from the Monday of the first week of a year to its day `day` (counted from 0), which is the
// weekday `weekday` (Sunday is 0). Negative if the day lies before that week.
int days_into_weeks(int day, int weekday) {
    constexpr int kThursday = 4;
    constexpr int kWeeks = 54 * 7;  // keeps the sum positive
    return day - (day - weekday + kThursday + kWeeks) % 7 + kThursday - 1;
}

IsoWeek iso_week(const std::tm& time) {
    int year = time.tm_year + 1900;
    int days = days_into_weeks(time.tm_yday, time.tm_wday);
    if (days < 0) {
        --year;
        days = days_into_weeks(time.tm_yday + days_of_year(year), time.tm_wday);
    } else if (const int next = days_into_weeks(time.tm_yday - days_of_year(year), time.tm_wday);
               next >= 0) {
        ++year;
        days = next;
    }
    return {year, days / 7 + 1};
}

std::optional<std::string_view> pattern_of(char letter) {
    switch (letter) {
        case 'c':
            return "%a %b %e %H:%M:%S %Y";
        case 'D':
        case 'x':
            return "%m/%d/%y";
        case 'F':
            return "%Y-%m-%d";
        case 'r':
            return "%I:%M:%S %p";
        case 'R':
            return "%H:%M";
        case 'T':
        case 'X':
            return "%H:%M:%S";
        default:
            return std::nullopt;
    }
}

// The text of a letter that stands for a word or a character.
std::optional<std::string> named(char letter, const Layout& layout, const std::tm& time) {
    const std::string_view day = kDays[size_t(time.tm_wday) % kDays.size()];
    const std::string_view month = kMonths[size_t(time.tm_mon) % kMonths.size()];
    switch (letter) {
        case 'a':
            return day_or_month(day.substr(0, 3), layout);
        case 'A':
            return day_or_month(day, layout);
        case 'b':
        case 'h':
            return day_or_month(month.substr(0, 3), layout);
        case 'B':
            return day_or_month(month, layout);
        case 'p':
        case 'P':
            return half_of_day(time, layout, letter == 'P');
        case 'n':
            return words("\n", layout);
        case 't':
            return words("\t", layout);
        case '%':
            return words("%", layout);
        default:
            return std::nullopt;
    }
}

std::optional<std::string> counted(char letter, const Layout& layout, const std::tm& time) {
    const int year = time.tm_year + 1900;
    const int hour = time.tm_hour % 12 == 0 ? 12 : time.tm_hour % 12;
    const int monday = (time.tm_wday + 6) % 7;  // days since Monday
    switch (letter) {
        case 'C':
            return number(year / 100 - (year % 100 < 0), 2, layout);
        case 'd':
            return number(time.tm_mday, 2, layout);
        case 'e':
            return number(time.tm_mday, 2, layout, '_');
        case 'g':
            return number((iso_week(time).year % 100 + 100) % 100, 2, layout);
        case 'G':
            return number(iso_week(time).year, 1, layout);
        case 'H':
            return number(time.tm_hour, 2, layout);
        case 'I':
            return number(hour, 2, layout);
        case 'j':
            return number(time.tm_yday + 1, 3, layout);
        case 'k':
            return number(time.tm_hour, 2, layout, '_');
        case 'l':
            return number(hour, 2, layout, '_');
        case 'm':
            return number(time.tm_mon + 1, 2, layout);
        case 'M':
            return number(time.tm_min, 2, layout);
        case 'S':
            return number(time.tm_sec, 2, layout);
        case 'u':
            return number(monday + 1, 1, layout);
        case 'U':
            return number((time.tm_yday - time.tm_wday + 7) / 7, 2, layout);
        case 'V':
            return number(iso_week(time).week, 2, layout);
        case 'w':
            return number(time.tm_wday, 1, layout);
        case 'W':
            return number((time.tm_yday - monday + 7) / 7, 2, layout);
        case 'y':
            return number((year % 100 + 100) % 100, 2, layout);
        case 'Y':
            return number(year, 1, layout);
        default:
            return std::nullopt;
    }
}

// Seconds since 1970, if the time is the system's local time.
std::string seconds(std::tm time, const Layout& layout) {
    time.tm_isdst = -1;
    return words(std::to_string(int64_t(std::mktime(&time))), layout);
}

// nullopt: there is no such letter, or none with this modifier.
std::optional<std::string> conversion(char letter, const Layout& layout, const std::tm& time) {
    const std::string_view with_e = "cCxXyY", with_o = "bBhCdeHIklmMSuUVwWygG";
    if (layout.modifier == 'E' && with_e.find(letter) == with_e.npos) return std::nullopt;
    if (layout.modifier == 'O' && with_o.find(letter) == with_o.npos) return std::nullopt;
    if (letter == 's') return seconds(time, layout);
    if (letter == 'z' || letter == 'Z') return "";  // the time has no zone
    if (const auto pattern = pattern_of(letter)) return words(expanded(*pattern, time), layout);
    const auto name = named(letter, layout, time);
    return name ? name : counted(letter, layout, time);
}

// Reads flags, width and modifier from `at`, behind %, up to the letter.
Layout layout_at(std::string_view pattern, size_t& at) {
    Layout layout;
    const auto next = [&] { return at < pattern.size() ? pattern[at] : '\0'; };
    for (;; ++at) {
        if (next() == '_' || next() == '-' || next() == '0')
            layout.pad = next();
        else if (next() == '^')
            layout.upper = true;
        else if (next() == '#')
            layout.other_case = true;
        else
            break;
    }
    for (; next() >= '0' && next() <= '9'; ++at) {
        layout.width = layout.width * 10 + size_t(next() - '0');
        if (layout.width > kMaxFieldWidth)
            throw Fault("strftime_now wider than " + std::to_string(kMaxFieldWidth));
    }
    if (next() == 'E' || next() == 'O') layout.modifier = pattern[at++];
    return layout;
}

std::string expanded(std::string_view pattern, const std::tm& time) {
    std::string text;
    for (size_t at = 0; at < pattern.size();) {
        if (pattern[at] != '%') {
            text += pattern[at++];
            continue;
        }
        const size_t begin = at++;
        // Python writes microseconds itself, without any flags.
        if (pattern.substr(at).starts_with('f')) {
            text += "000000";
            ++at;
            continue;
        }
        const Layout layout = layout_at(pattern, at);
        const auto known =
            at < pattern.size() ? conversion(pattern[at], layout, time) : std::nullopt;
        at = std::min(at + 1, pattern.size());
        text += known ? *known : words(pattern.substr(begin, at - begin), layout);
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
