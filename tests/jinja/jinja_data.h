// The golden templates and the variables that they are rendered with.
#pragma once

#include <ctime>
#include <filesystem>
#include <string>
#include <vector>

#include "io/damage.h"
#include "io/input_file.h"
#include "jinja/jinja.h"
#include "paths.h"

namespace aerie::test {

constexpr jinja::Label kData = 1;

inline std::filesystem::path jinja_folder() {
    return test_data_dir() / "jinja";
}

inline std::string jinja_file(const std::string& name) {
    return read_text(jinja_folder() / name, 4 << 20);
}

inline const Json& jinja_golden() {
    static const Json golden = Json::parse(jinja_file("templates.json"), "templates.json");
    return golden;
}

// 2026-07-04 09:05:03, a Saturday.
inline std::tm jinja_now() {
    std::tm now = {};
    now.tm_year = 126;
    now.tm_mon = 6;
    now.tm_mday = 4;
    now.tm_hour = 9;
    now.tm_min = 5;
    now.tm_sec = 3;
    now.tm_wday = 6;
    now.tm_yday = 184;
    return now;
}

// All of the conversation has the label kData; the rest is the template's.
inline jinja::Variable::Object jinja_variables(const Json& conversation, bool prompt) {
    using jinja::kTemplate;
    jinja::Variable::Object all;
    for (const char* name : {"messages", "tools", "documents"}) {
        const Json* value = conversation.find(name);
        all.emplace_back(name, jinja::Variable(value ? *value : Json(), kData));
    }
    all.emplace_back("add_generation_prompt", jinja::Variable(Json(prompt), kTemplate));
    for (const char* name : {"bos_token", "eos_token"}) {
        all.emplace_back(name, jinja::Variable(*jinja_golden().find(name), kTemplate));
    }
    if (const Json* more = conversation.find("kwargs")) {
        for (const auto& [name, value] : *more->object()) {
            all.emplace_back(name, jinja::Variable(value, kData));
        }
    }
    return all;
}

// Renders a template with these variables, which have the label kData.
inline jinja::Rendered render_jinja(const std::string& text, const Json& variables = {}) {
    jinja::Variable::Object all;
    if (variables.object()) {
        for (const auto& [name, value] : *variables.object()) {
            all.emplace_back(name, jinja::Variable(value, kData));
        }
    }
    return jinja::Template::parse(text, "t").render(all, jinja_now());
}

}  // namespace aerie::test
