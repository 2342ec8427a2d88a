// Letters of ASCII, whatever the locale.
#pragma once

#include <string>

namespace aerie {

inline std::string lower_ascii(std::string text) {
    for (char& c : text)
        if (c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
    return text;
}

}  // namespace aerie
