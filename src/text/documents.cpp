#include "text/documents.h"

#include <algorithm>

namespace aerie {

std::vector<std::string_view> split_documents(std::string_view text) {
    constexpr std::string_view kDivider = "---8<---";
    std::vector<std::string_view> documents;
    size_t begin = 0, line = 0;
    while (line <= text.size()) {
        const size_t end = std::min(text.find('\n', line), text.size());
        if (text.substr(line, end - line) == kDivider) {
            documents.push_back(text.substr(begin, std::max(line, begin + 1) - 1 - begin));
            begin = std::min(end + 1, text.size());
        }
        line = end + 1;
    }
    documents.push_back(text.substr(begin));
    return documents;
}

}  // namespace aerie
