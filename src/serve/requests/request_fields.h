// Reads the members of a client's JSON object: each is taken once and checked, and members that
// nobody took are reported.
#pragma once

#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "io/json.h"

namespace aerie {

// A request's JSON; a UTF-8 byte order mark in front is left out. Throws Problem.
Json parse_body(std::string_view text);

// Null counts as absent everywhere, as it does for OpenAI. Every function throws Problem.
class RequestFields {
  public:
    // `path` says where the object is in the request, such as "stream_options"; empty: it is the
    // whole.
    RequestFields(const Json& object, const std::string& path);

    const Json* take(const std::string& name);
    std::optional<bool> flag(const std::string& name);
    std::optional<std::string> text(const std::string& name);
    std::optional<int64_t> whole(const std::string& name, int64_t least, int64_t most);
    std::optional<float> number(const std::string& name, double least, double most);

    // Accepts members that change nothing here.
    void ignore(std::initializer_list<const char*> names);
    // Accepts a member for which only one value is supported, such as the one that asks for
    // nothing; it is given as JSON. Empty: no value is. Numbers are compared by value.
    void only(const std::string& name, std::string_view json);
    // Adds the paths of the members that were not taken, up to a hundred paths in all.
    void rest(std::vector<std::string>& paths) const;

    // The path of a member in the request, fit to be shown.
    std::string path(const std::string& name) const;

  private:
    const Json& object_;
    const std::string path_;
    std::set<std::string> taken_;
};

}  // namespace aerie
