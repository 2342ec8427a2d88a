// Items with the keys by which they are sorted, grouped or compared.
#pragma once

#include <span>
#include <vector>

#include "jinja/builtins.h"

namespace aerie::jinja {

struct Keyed {
    Value key, value;
    Value shown;  // the key before its case was dropped
};

// The member at a path such as "function.name" or 0. `otherwise` replaces members that do not
// exist.
Value member_at(const Call& call, const Value& value, const Value& path,
                const Value* otherwise = nullptr);

// `attribute`: path of the key inside an item; nullptr or None: the item is the key. `otherwise`:
// the key of items that have none.
std::vector<Keyed> keyed(const Call& call, std::span<const Value> items, bool case_sensitive,
                         const Value* attribute, const Value* otherwise = nullptr);
// Items with equal keys stay in their order.
void sort_by_key(Workspace& workspace, std::vector<Keyed>& items, bool reverse);

}  // namespace aerie::jinja
