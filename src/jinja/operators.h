// The operators of expressions, by Python's rules.
#pragma once

#include <cstddef>
#include <string_view>

#include "jinja/workspace.h"

namespace aerie::jinja {

bool equals(Workspace& workspace, const Value& a, const Value& b);
// Below 0: a is less; 0: they are equal. Throws Fault if they cannot be ordered. NaN is the
// greatest.
int compare(Workspace& workspace, const Value& a, const Value& b);
bool contains(Workspace& workspace, const Value& whole, const Value& part);

// Index of the entry with this key, or the dict's size. Throws Fault if the value cannot be a key.
size_t position_of(Workspace& workspace, const Dict& dict, const Value& key);
const Value* find(Workspace& workspace, const Dict& dict, const Value& key);
const Value* find(Workspace& workspace, const Dict& dict, std::string_view key);

// The items of a value: the keys of a dict, the characters of a text. Reads a generator to its end.
// Throws Fault if the value is not iterable.
std::span<const Value> items_of(Workspace& workspace, const Value& value);
// The number of items or characters. Throws Fault for a value without a length.
int64_t length_of(Workspace& workspace, const Value& value);

// `op` is one of + - * / // % **.
Value arithmetic(Workspace& workspace, std::string_view op, const Value& a, const Value& b);
Value negative(const Value& value);

}  // namespace aerie::jinja
