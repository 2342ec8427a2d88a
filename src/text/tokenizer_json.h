// Reads the parts of a tokenizer.json, with one function each. All throw Error, one line that names
// no file, for what is not supported.
#pragma once

#include <string>
#include <vector>

#include "io/json.h"
#include "text/bpe_tokenizer.h"

namespace aerie::tokenizer_json {

struct Cutting {
    PreTokens pre_tokens;
    bool byte_level = false;  // words are bytes, spelled in the byte alphabet
};

// The ids that are put around a text.
struct Around {
    std::vector<int> prefix, suffix;
};

// A part that is null or absent does nothing.
std::vector<AddedToken> added_tokens(const Json* part);
Normaliser normaliser(const Json* part);
Cutting cutting(const Json* part);
Around around(const Json* part);
TokenDecoder decoder(const Json* part);

// The "type" of an object. `what` names the part in errors.
const std::string& type_of(const Json& part, const std::string& what);
// Members of an object. An absent one is `fallback`; without a fallback it is an error.
bool flag(const Json& part, const char* name, const bool* fallback = nullptr);
const std::string& string(const Json& part, const char* name);
const Json::Array& array(const Json& part, const char* name);
size_t count(const Json& part, const char* name);  // a whole number from 0 to 2^20 - 1
Pattern pattern(const Json& part);                 // "pattern": a String or a Regex
inline bool absent(const Json* part) {
    return !part || part->is_null();
}

}  // namespace aerie::tokenizer_json
