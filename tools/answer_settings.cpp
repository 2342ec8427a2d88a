#include "answer_settings.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <random>
#include <sstream>
#include <string_view>
#include <type_traits>
#include <utility>

#include "core/error.h"
#include "core/utf8.h"

namespace aerie {

namespace {

// Calls visit(name, value) for each setting that /set changes. Settings: AnswerSettings, const or
// not.
template <typename Settings, typename Visit>
void for_each_setting(Settings& settings, const Visit& visit) {
    visit("temp", settings.sampling.filters.temperature);
    visit("top-k", settings.sampling.filters.top_k);
    visit("top-p", settings.sampling.filters.top_p);
    visit("min-p", settings.sampling.filters.min_p);
    visit("repeat-penalty", settings.sampling.penalties.repetition);
    visit("seed", settings.sampling.seed);
    visit("predict", settings.max_tokens);
}

// A setting's name as /set knows it: Ollama's and llama.cpp's other spellings are understood.
std::string own_name(std::string name) {
    constexpr std::pair<const char*, const char*> kOthers[] = {
        {"temperature", "temp"},    {"repetition-penalty", "repeat-penalty"},
        {"n", "predict"},           {"max-tokens", "predict"},
        {"num-predict", "predict"}, {"n-predict", "predict"}};
    std::replace(name.begin(), name.end(), '_', '-');
    for (const auto& [other, own] : kOthers)
        if (name == other) return own;
    return name;
}

std::string names_of(const AnswerSettings& settings) {
    std::string names;
    for_each_setting(settings, [&](const char* name, const auto&) {
        names += (names.empty() ? "" : ", ") + std::string(name);
    });
    return names;
}

}  // namespace

void set_by_name(AnswerSettings& settings, const std::string& whole) {
    constexpr std::string_view kOllamas = "parameter ";
    const std::string setting = whole.starts_with(kOllamas) ? whole.substr(kOllamas.size()) : whole;
    const size_t space = setting.find_first_of(" =");
    const std::string name = own_name(setting.substr(0, space));
    const size_t begin = setting.find_first_not_of(" =", space);
    const std::string text = begin == setting.npos ? "" : setting.substr(begin);
    AnswerSettings changed = settings;
    bool is_known = false;
    for_each_setting(changed, [&](const char* known, auto& value) {
        if (name != known) return;
        is_known = true;
        if (name == "seed" && text == "-1") {
            value = std::random_device()();
            return;
        }
        const char* end = text.data() + text.size();
        const auto [rest, error] = std::from_chars(text.data(), end, value);
        if (error == std::errc::result_out_of_range && rest == end)
            throw UsageError("/set " + name + ": " + text + " is out of range");
        if (error != std::errc() || rest != end)
            throw UsageError("/set " + name + " takes " +
                             (std::is_floating_point_v<std::decay_t<decltype(value)>> ? "a number"
                              : std::is_unsigned_v<std::decay_t<decltype(value)>>
                                  ? "a whole number from 0 on"
                                  : "a whole number") +
                             ", not " + in_quotes(text));
    });
    if (!is_known)
        throw UsageError("/set: there is no " + in_quotes(name) + "; the settings are " +
                         names_of(settings));
    if (changed.sampling.filters.top_k == -1) changed.sampling.filters.top_k = 0;  // off, too
    check_sampling(changed.sampling);
    if (changed.max_tokens < -1) throw UsageError("/set predict takes -1 or a number of tokens");
    settings = changed;
}

std::string shown(const AnswerSettings& settings) {
    std::ostringstream text;
    for_each_setting(settings, [&](const char* name, const auto& value) {
        text << (text.tellp() > 0 ? ", " : "") << name << " " << value;
    });
    return text.str();
}

}  // namespace aerie
