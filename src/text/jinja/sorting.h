// Items with what they are sorted, grouped or told apart by.
#pragma once

#include <span>
#include <vector>

#include "text/jinja/builtins.h"

namespace aerie::jinja {

struct Keyed {
    Value key, value;
    Value shown;  // the key as it was before its case was dropped
};

// The member at a path such as "function.name" or 0.
// `otherwise` stands for what is not there.
Value member_at(const Call& call, const Value& value, const Value& path,
                const Value* otherwise = nullptr);

// `attribute`: path of the key inside an item, or nullptr or None for the item itself; `otherwise`:
// the key where there is none.
std::vector<Keyed> keyed(const Call& call, std::span<const Value> items, bool case_sensitive,
                         const Value* attribute, const Value* otherwise = nullptr);
// Equal ones stay in their order.
void sort_by_key(Workspace& workspace, std::vector<Keyed>& items, bool reverse);

}  // namespace aerie::jinja
