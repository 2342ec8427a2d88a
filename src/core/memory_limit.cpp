// /proc/self/cgroup gives the process's group in each hierarchy. /proc/self/mountinfo gives where
// the hierarchies are mounted, and which part of each (cgroups(7), proc(5)).
#include "core/memory_limit.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace aerie {

namespace fs = std::filesystem;

namespace {

// A mounted hierarchy that limits memory.
struct Mount {
    bool is_version_2 = false;
    std::string part;  // mounted part of the hierarchy; "/": all of it
    fs::path place;
};

std::vector<std::string> words_of(const std::string& line) {
    std::istringstream words(line);
    std::vector<std::string> list;
    for (std::string word; words >> word;) list.push_back(word);
    return list;
}

bool has_word(std::string_view list, std::string_view word) {
    while (!list.empty()) {
        const size_t end = std::min(list.find(','), list.size());
        if (list.substr(0, end) == word) return true;
        list.remove_prefix(std::min(end + 1, list.size()));
    }
    return false;
}

// mountinfo escapes spaces and similar characters as a backslash and three octal digits.
std::string unescaped(const std::string& text) {
    std::string plain;
    for (size_t i = 0; i < text.size(); ++i) {
        int code = 0;
        const char* digits = text.data() + i + 1;
        if (text[i] == '\\' && i + 3 < text.size() &&
            std::from_chars(digits, digits + 3, code, 8).ptr == digits + 3) {
            plain += char(code);
            i += 3;
        } else {
            plain += text[i];
        }
    }
    return plain;
}

// A line is "36 35 98:0 /part /place options [more] - type source options".
std::vector<Mount> memory_mounts(const fs::path& root) {
    std::ifstream table(root / "proc/self/mountinfo");
    std::vector<Mount> mounts;
    for (std::string line; std::getline(table, line);) {
        const std::vector<std::string> words = words_of(line);
        const auto dash = std::find(words.begin(), words.end(), "-");
        if (words.size() < 5 || words.end() - dash < 4) continue;
        const bool is_version_2 = dash[1] == "cgroup2";
        if (!is_version_2 && (dash[1] != "cgroup" || !has_word(dash[3], "memory"))) continue;
        mounts.push_back({is_version_2, unescaped(words[3]),
                          root / fs::path(unescaped(words[4])).relative_path()});
    }
    return mounts;
}

// The process's group in the hierarchy of version 2, or in the one of version 1 that limits memory;
// empty if there is none. Lines are "0::/group" and "4:cpu,memory:/group".
std::string own_group(const fs::path& root, bool is_version_2) {
    std::ifstream groups(root / "proc/self/cgroup");
    for (std::string line; std::getline(groups, line);) {
        const size_t first = line.find(':'), second = line.find(':', first + 1);
        if (first == line.npos || second == line.npos) continue;
        const std::string_view controllers =
            std::string_view(line).substr(first + 1, second - first - 1);
        if (is_version_2 ? controllers.empty() : has_word(controllers, "memory"))
            return line.substr(second + 1);
    }
    return {};
}

size_t number_in(const fs::path& file) {
    std::ifstream stream(file);
    uint64_t bytes = 0;
    return stream >> bytes ? size_t(std::min<uint64_t>(bytes, SIZE_MAX)) : SIZE_MAX;  // or "max"
}

// The path of the group below the mount. A group outside the mounted part is the container's own,
// which is at the mount itself.
fs::path below_mount(const Mount& mount, const std::string& group) {
    if (mount.part == "/") return fs::path(group).relative_path();
    if (group != mount.part && !group.starts_with(mount.part + "/")) return {};
    return fs::path(group.substr(mount.part.size())).relative_path();
}

}  // namespace

size_t memory_limit(const fs::path& root) {
    size_t least = SIZE_MAX;
    for (const Mount& mount : memory_mounts(root)) {
        const std::string group = own_group(root, mount.is_version_2);
        if (group.empty()) continue;
        const char* file = mount.is_version_2 ? "memory.max" : "memory.limit_in_bytes";
        fs::path place = mount.place;
        least = std::min(least, number_in(place / file));
        for (const fs::path& name : below_mount(mount, group)) {
            if (name == "..") break;
            place /= name;
            least = std::min(least, number_in(place / file));
        }
    }
    return least;
}

}  // namespace aerie
