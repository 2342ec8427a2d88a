// Everything that can draft for the bundled model.
#pragma once

#include "engine/bundled.h"

namespace aerie::test {

inline std::filesystem::path head_path(const std::string& end) {
    return models_dir() / ("aerie-tiny-" + end + (end == "draft" ? ".gguf" : ""));
}
inline const std::vector<std::string> kHeads = {"eagle", "eagle3", "medusa", "hydra", "draft"};

// Options for the bundled model with these heads.
inline LoadOptions options_with(const std::vector<std::string>& heads, DType type,
                                const std::string& method) {
    LoadOptions options = bundled_options(type);
    options.head.clear();
    options.draft.method = method;
    for (const std::string& head : heads)
        if (options.head.empty())
            options.head = head_path(head);
        else
            options.more_heads.push_back(head_path(head));
    return options;
}

// The method with trees that are chosen by measurement.
inline DraftOptions chosen(const std::string& method) {
    DraftOptions options;
    options.method = method;
    return options;
}

}  // namespace aerie::test
