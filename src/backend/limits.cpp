// All limits with their names, in one table.
#include "backend/limits.h"

#include <algorithm>

#include "core/error.h"

namespace aerie {

namespace {

struct Size {
    int Limits::*member;
    const char* what;
};

constexpr Size kSizes[] = {
    {&Limits::rows, "rows of a pass"},
    {&Limits::top_k, "candidates of a row"},
    {&Limits::widest, "columns of an activation"},
    {&Limits::vocab, "tokens of a vocabulary"},
    {&Limits::context, "positions of a context (-c), draft tokens included,"},
    {&Limits::heads, "attention heads"},
    {&Limits::queries, "attention heads for each KV head"},
    {&Limits::head_dim, "elements of an attention head"},
    {&Limits::places, "rows of experts in a pass"},
};
static_assert(sizeof(kSizes) / sizeof(Size) == sizeof(Limits) / sizeof(int));

}  // namespace

Limits largest(const Limits& a, const Limits& b) {
    Limits both;
    for (const Size& size : kSizes) both.*size.member = std::max(a.*size.member, b.*size.member);
    return both;
}

void check_limits(const Limits& wanted, const Limits& most, const std::string& source,
                  const std::string& device) {
    for (const Size& size : kSizes)
        if (wanted.*size.member > most.*size.member)
            throw Error(source + ": " + std::to_string(wanted.*size.member) + " " + size.what +
                        " are more than the " + std::to_string(most.*size.member) + " of " +
                        device);
}

}  // namespace aerie
