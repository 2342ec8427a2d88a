// Cuts texts and puts them together.
#include "jinja/strings.h"

#include <algorithm>

#include "jinja/characters.h"

namespace aerie::jinja {
namespace {

constexpr size_t kBytesPerPlace = 8;  // the cost of finding a place, however near

bool is_stripped(std::string_view character, const std::optional<std::string_view>& chars) {
    if (!chars) return is_space(first_char(character));
    for (size_t at = 0; at < chars->size();) {
        const size_t size = char_size((*chars)[at]);
        if (chars->substr(at, size) == character) return true;
        at += size;
    }
    return false;
}

// Where the last character of text[0, end) begins.
size_t last_begin(std::string_view text, size_t end) {
    do --end;
    while (end > 0 && (text[end] & 0xC0) == 0x80);
    return end;
}

std::vector<Text> split_space(Workspace& workspace, const Text& text, int64_t limit) {
    std::vector<Text> parts;
    const std::string_view bytes = text.view();
    size_t at = 0;
    const auto skip = [&](bool space) {
        while (at < bytes.size() && is_space(first_char(bytes.substr(at))) == space) {
            at += char_size(bytes[at]);
        }
    };
    for (skip(true); at < bytes.size(); skip(true)) {
        workspace.add_item(parts.size());
        const size_t begin = at;
        if (limit >= 0 && int64_t(parts.size()) == limit) {
            parts.push_back(text.part(begin, bytes.size() - begin));
            break;
        }
        skip(false);
        parts.push_back(text.part(begin, at - begin));
    }
    return parts;
}

std::vector<Text> split_space_from_right(Workspace& workspace, const Text& text, int64_t limit) {
    std::vector<Text> parts;
    Text rest = strip(workspace, text, std::nullopt, false, true);
    while (rest.size > 0 && int64_t(parts.size()) != limit) {
        workspace.add_item(parts.size());
        const std::string_view bytes = rest.view();
        size_t begin = bytes.size();
        while (begin > 0 && !is_space(last_char(bytes.substr(0, begin)))) {
            begin = last_begin(bytes, begin);
        }
        parts.push_back(rest.part(begin, bytes.size() - begin));
        rest = strip(workspace, rest.part(0, begin), std::nullopt, false, true);
    }
    if (rest.size > 0) parts.push_back(rest);
    std::reverse(parts.begin(), parts.end());
    return parts;
}

void check_separator(std::string_view separator) {
    if (separator.empty()) throw Fault("split by an empty separator");
}

}  // namespace

Text strip(Workspace& workspace, const Text& text, std::optional<std::string_view> chars, bool left,
           bool right) {
    const std::string_view bytes = text.view();
    size_t begin = 0, end = bytes.size();
    const size_t cost = 1 + (chars ? chars->size() : 0);
    while (left && begin < end) {
        const size_t size = char_size(bytes[begin]);
        workspace.touch(cost);
        if (!is_stripped(bytes.substr(begin, size), chars)) break;
        begin += size;
    }
    while (right && end > begin) {
        const size_t last = last_begin(bytes, end);
        workspace.touch(cost);
        if (!is_stripped(bytes.substr(last, end - last), chars)) break;
        end = last;
    }
    return text.part(begin, end - begin);
}

std::vector<Text> split(Workspace& workspace, const Text& text,
                        std::optional<std::string_view> separator, int64_t limit) {
    workspace.touch(text.size);
    if (!separator) return split_space(workspace, text, limit);
    check_separator(*separator);
    std::vector<Text> parts;
    size_t begin = 0;
    while (limit < 0 || int64_t(parts.size()) < limit) {
        const size_t at = find_text(workspace, text.view(), *separator, begin);
        if (at == std::string_view::npos) break;
        workspace.add_item(parts.size());
        parts.push_back(text.part(begin, at - begin));
        begin = at + separator->size();
    }
    parts.push_back(text.part(begin, text.size - begin));
    return parts;
}

std::vector<Text> split_from_right(Workspace& workspace, const Text& text,
                                   std::optional<std::string_view> separator, int64_t limit) {
    workspace.touch(text.size);
    if (!separator) return split_space_from_right(workspace, text, limit);
    check_separator(*separator);
    std::vector<Text> parts;
    size_t end = text.size;
    while (limit < 0 || int64_t(parts.size()) < limit) {
        if (end < separator->size()) break;
        const std::string_view rest = text.view().substr(0, end);
        // rfind tries every place: the cost of a long separator is counted beforehand.
        if (separator->size() > 16) workspace.touch(end * separator->size() / 8);
        const size_t at = rest.rfind(*separator);
        workspace.touch(end - (at == rest.npos ? 0 : at));
        if (at == rest.npos) break;
        workspace.add_item(parts.size());
        parts.push_back(text.part(at + separator->size(), end - at - separator->size()));
        end = at;
    }
    parts.push_back(text.part(0, end));
    std::reverse(parts.begin(), parts.end());
    return parts;
}

std::vector<Text> split_lines(Workspace& workspace, const Text& text, bool keep_ends) {
    workspace.touch(text.size);
    std::vector<Text> lines;
    const std::string_view bytes = text.view();
    for (size_t begin = 0, at = 0; begin < bytes.size(); begin = at) {
        workspace.add_item(lines.size());
        while (at < bytes.size() && !is_line_break(first_char(bytes.substr(at)))) {
            at += char_size(bytes[at]);
        }
        const size_t end = at;
        if (at < bytes.size()) {
            at += bytes.substr(at).starts_with("\r\n") ? 2 : char_size(bytes[at]);
        }
        lines.push_back(text.part(begin, (keep_ends ? at : end) - begin));
    }
    return lines;
}

Text replace(Workspace& workspace, const Text& text, std::string_view old, const Text& by,
             int64_t limit) {
    TextBuilder result(workspace);
    size_t done = 0;  // bytes of `text`
    for (int64_t count = 0; limit < 0 || count < limit; ++count) {
        // An empty `old` is found before every character, and at the end.
        const bool between = old.empty() && count > 0;
        if (between && done == text.size) break;
        const size_t from = between ? done + char_size(text.data[done]) : done;
        const size_t at = find_text(workspace, text.view(), old, from);
        if (at == std::string_view::npos) break;
        result.add(text.part(done, at - done));
        result.add(by);
        done = at + old.size();
    }
    result.add(text.part(done, text.size - done));
    return result.text();
}

int64_t count_of(Workspace& workspace, const Text& text, std::string_view part) {
    if (part.empty()) return int64_t(char_count(workspace, text.view())) + 1;
    int64_t count = 0;
    for (size_t at = 0;; ++count) {
        at = find_text(workspace, text.view(), part, at);
        if (at == std::string_view::npos) return count;
        workspace.touch(kBytesPerPlace);
        at += part.size();
    }
}

Text characters(Workspace& workspace, const Text& text, size_t begin, size_t end) {
    workspace.touch(text.size);
    const size_t first = byte_of_char(text.view(), begin);
    return text.part(first, byte_of_char(text.view().substr(first), end - begin));
}

SliceRange slice_range(size_t size, std::optional<int64_t> start, std::optional<int64_t> stop,
                       int64_t step) {
    if (step == 0) throw Fault("slice with a step of 0");
    const auto count = int64_t(size);
    const int64_t lowest = step > 0 ? 0 : -1, highest = step > 0 ? count : count - 1;
    const auto bound = [&](std::optional<int64_t> at, int64_t otherwise) {
        if (!at) return otherwise;
        return std::clamp(*at < 0 ? *at + count : *at, lowest, highest);
    };
    const int64_t first = bound(start, step > 0 ? lowest : highest);
    const int64_t end = bound(stop, step > 0 ? highest : lowest);
    const int64_t distance = step > 0 ? end - first : first - end;
    if (distance <= 0) return {};
    // With a step beyond the end the count is 1, and nothing else here can overflow.
    const uint64_t by = step > 0 ? uint64_t(step) : 0 - uint64_t(step);
    return {first, size_t(uint64_t(distance - 1) / by) + 1, step};
}

Text slice(Workspace& workspace, const Text& text, std::optional<int64_t> start,
           std::optional<int64_t> stop, int64_t step) {
    const size_t size = char_count(workspace, text.view());
    const SliceRange range = slice_range(size, start, stop, step);
    if (range.count == 0) return text.part(0, 0);
    if (step == 1) {
        return characters(workspace, text, range.at(0), range.at(0) + range.count);
    }
    workspace.touch(size * sizeof(uint32_t));
    std::pmr::vector<uint32_t> begins(workspace.memory());  // where each character begins
    begins.reserve(size);
    for (size_t at = 0; at < text.size; at += char_size(text.data[at])) {
        begins.push_back(uint32_t(at));
    }
    TextBuilder result(workspace);
    for (size_t i = 0; i < range.count; ++i) {
        const size_t at = begins[range.at(i)];
        result.add(text.part(at, char_size(text.data[at])));
    }
    return result.text();
}

Text joined(Workspace& workspace, const std::vector<Text>& parts, const Text& between) {
    TextBuilder result(workspace);
    for (size_t i = 0; i < parts.size(); ++i) {
        if (i > 0) result.add(between);
        result.add(parts[i]);
    }
    return result.text();
}

}  // namespace aerie::jinja
