#include "model/draft_vocabulary.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <string_view>

#include "core/error.h"
#include "io/input_file.h"

namespace aerie {

namespace {

constexpr size_t kMaxBytes = size_t(64) << 20;

// Parses the two numbers of a line; false: it has another form.
bool parse_line(std::string_view line, uint64_t& id, uint64_t& count) {
    const char* end = line.data() + line.size();
    const auto [after, problem] = std::from_chars(line.data(), end, id);
    if (problem != std::errc() || after == end || *after != ' ') return false;
    const auto [rest, other] = std::from_chars(after + 1, end, count);
    return other == std::errc() && rest == end;
}

}  // namespace

std::vector<uint64_t> read_token_counts(const std::filesystem::path& path, int vocab) {
    const std::string text = read_text(path, kMaxBytes);
    std::vector<uint64_t> counts(static_cast<size_t>(vocab));
    std::string_view rest = text;
    for (int line = 1; !rest.empty(); ++line) {
        const auto fail = [&](const std::string& what) {
            throw Error(path.string() + ", line " + std::to_string(line) + ": " + what);
        };
        const size_t length = std::min(rest.find('\n'), rest.size());
        uint64_t id = 0, count = 0;
        if (!parse_line(rest.substr(0, length), id, count))
            fail("expected a token's id, a space and its count");
        if (id >= uint64_t(vocab))
            fail("token " + std::to_string(id) + " of a model of " + std::to_string(vocab));
        if (counts[id] > 0) fail("token " + std::to_string(id) + " a second time");
        counts[id] = count;
        rest.remove_prefix(std::min(length + 1, rest.size()));
    }
    if (std::all_of(counts.begin(), counts.end(), [](uint64_t count) { return count == 0; }))
        throw Error(path.string() + ": no token occurs");
    return counts;
}

std::string token_counts_text(std::span<const uint64_t> counts) {
    std::vector<size_t> ids(counts.size());
    std::iota(ids.begin(), ids.end(), size_t(0));
    std::stable_sort(ids.begin(), ids.end(),
                     [&](size_t a, size_t b) { return counts[a] > counts[b]; });
    std::string text;
    for (const size_t id : ids)
        if (counts[id] > 0) text += std::to_string(id) + " " + std::to_string(counts[id]) + "\n";
    return text;
}

std::vector<int32_t> draft_vocabulary(int size, int vocab, std::span<const int> always,
                                      std::span<const uint64_t> counts) {
    std::vector<int32_t> ids(static_cast<size_t>(vocab));
    std::iota(ids.begin(), ids.end(), 0);
    const auto is_wanted = [&](int32_t id) {
        return std::find(always.begin(), always.end(), id) != always.end();
    };
    std::stable_partition(ids.begin(), ids.end(), is_wanted);
    if (!counts.empty())
        std::stable_sort(
            ids.begin() + std::count_if(ids.begin(), ids.end(), is_wanted), ids.end(),
            [&](int32_t a, int32_t b) { return counts[size_t(a)] > counts[size_t(b)]; });
    ids.resize(size_t(std::min(size, vocab)));
    std::sort(ids.begin(), ids.end());
    return ids;
}

}  // namespace aerie
