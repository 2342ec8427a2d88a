// Reads the members of a client's JSON object: each is taken once and checked, and members that
// nobody took are refused.
#pragma once

#include <initializer_list>
#include <optional>
#include <set>
#include <string>

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
    // Accepts a member for which only one value is supported.
    void only(const std::string& name, const Json& value);
    // Refuses all members that were not taken.
    void finish() const;

    // The path of a member in the request, fit to be shown.
    std::string path(const std::string& name) const;

  private:
    const Json& object_;
    const std::string path_;
    std::set<std::string> taken_;
};

}  // namespace aerie
