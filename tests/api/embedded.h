// The bundled model as a program that embeds the library opens it.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "api/aerie.hpp"
#include "paths.h"

namespace aerie::test {

inline std::string bundled_path() {
    return (models_dir() / "aerie-tiny").string();
}

// The strings of these options live as long as the program.
inline aerie_model_options small_options() {
    static const std::string path = bundled_path();
    aerie_model_options options = aerie_model_options_init();
    options.model = path.c_str();
    options.device = "cpu";
    options.threads = 1;
    options.context = 256;
    options.tree_nodes = 12;
    options.tree_levels = 4;
    options.tree_top_k = 4;
    options.cache = "";
    return options;
}

inline constexpr const char* kPrompt =
    "USER: A baker makes 24 rolls in the morning and twice as many in the afternoon. He sells 50 "
    "of them. How many rolls are left? ASSISTANT:";

inline aerie_request small_request(int max_tokens = 32) {
    aerie_request request = aerie_request_init();
    request.text = kPrompt;
    request.max_tokens = max_tokens;
    return request;
}

inline std::string answer_to(Session& session, const aerie_request& request) {
    session.begin(request);
    session.run();
    return session.answer().text;
}

}  // namespace aerie::test
