// The operators of expressions, by Python's rules.
#pragma once

#include <cstddef>
#include <string_view>

#include "text/jinja/workspace.h"

namespace aerie::jinja {

bool equals(Workspace& workspace, const Value& a, const Value& b);
// Below 0: a is less; 0: equal. Throws Fault if they cannot be ordered. NaN is the greatest.
int compare(Workspace& workspace, const Value& a, const Value& b);
bool contains(Workspace& workspace, const Value& whole, const Value& part);

// Of the entry with this key, or the dict's size. Throws Fault if the key cannot be one.
size_t position_of(Workspace& workspace, const Dict& dict, const Value& key);
const Value* find(Workspace& workspace, const Dict& dict, const Value& key);
const Value* find(Workspace& workspace, const Dict& dict, std::string_view key);

// The items it is made of: of a dict its keys, of a text its characters. Reads a generator to its
// end. `what` tells the user what wanted them.
std::span<const Value> items_of(Workspace& workspace, const Value& value);
// How many; throws Fault for what has no length.
int64_t length_of(Workspace& workspace, const Value& value);

// `op` is one of + - * / // % **.
Value arithmetic(Workspace& workspace, std::string_view op, const Value& a, const Value& b);
Value negative(const Value& value);

}  // namespace aerie::jinja
