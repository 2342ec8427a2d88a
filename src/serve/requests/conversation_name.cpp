// Writes each id as groups of 5 bits, the lowest first. A group is a digit of base64url, whose
// sixth bit says that another group follows.
#include "serve/requests/conversation_name.h"

#include <climits>
#include <cstdint>

namespace aerie {

namespace {

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr uint32_t kBits = 5, kMore = 1 << kBits;

}  // namespace

std::string conversation_name(std::span<const int> ids) {
    std::string name;
    name.reserve(3 * ids.size());
    for (const int id : ids) {
        uint32_t rest = uint32_t(id);
        for (; rest >= kMore; rest >>= kBits) name += kDigits[rest % kMore + kMore];
        name += kDigits[rest];
    }
    return name;
}

std::optional<std::vector<int>> ids_of_conversation(std::string_view name) {
    std::vector<int> ids;
    uint64_t id = 0;
    uint32_t shift = 0;
    for (const char c : name) {
        const size_t digit = kDigits.find(c);
        if (digit == std::string_view::npos) return {};
        id |= uint64_t(digit % kMore) << shift;
        if (id > INT_MAX) return {};
        shift += kBits;
        if (digit >= kMore && shift < 35) continue;
        if (digit >= kMore) return {};
        ids.push_back(int(id));
        id = shift = 0;
    }
    if (shift > 0) return {};
    return ids;
}

}  // namespace aerie
