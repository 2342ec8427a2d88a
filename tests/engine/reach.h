// How far a model's rows reach back: to everything, through windows of several sizes, or with
// positions scaled by YaRN.
#pragma once

#include "engine/model_files.h"

namespace aerie::test {

enum class Reach { whole, windows, yarn };

inline const char* name(Reach reach) {
    return reach == Reach::windows ? "windows" : reach == Reach::yarn ? "yarn" : "whole";
}

// Windows smaller than a chunk, of one chunk and across chunks, beside layers without a window; the
// head gets one, too.
inline void change(ModelFiles& files, Reach reach) {
    ModelConfig& config = files.config;
    if (reach == Reach::windows) {
        constexpr int kWindows[] = {24, 0, 64, 65, 5, 100};
        for (int i = 0; i < config.layers; ++i) config.windows.push_back(kWindows[i % 6]);
        if (files.head_config) files.head_config->windows = {24};
    }
    if (reach == Reach::yarn) {
        config.rope.scaling = Rope::Scaling::yarn;
        config.rope.trained_context = config.context / 4;
        config.rope.factor = 4;
        config.rope.attention = 1.1386;  // 0.1 ln(4) + 1
    }
}

}  // namespace aerie::test
