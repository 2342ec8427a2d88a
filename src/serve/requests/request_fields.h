// Members of a JSON object that came from outside: each is taken once, checked, and what nobody
// took is refused.
#pragma once

#include <initializer_list>
#include <optional>
#include <set>
#include <string>

#include "io/json.h"

namespace aerie {

// A request's JSON. Throws Problem.
Json parse_body(std::string_view text);

// Null counts as absent everywhere, as it does for OpenAI. All of it throws Problem.
class RequestFields {
  public:
    // `path` is that of the object in the request, such as "stream_options"; empty: the whole.
    RequestFields(const Json& object, const std::string& path);

    const Json* take(const std::string& name);
    std::optional<bool> flag(const std::string& name);
    std::optional<std::string> text(const std::string& name);
    std::optional<int64_t> whole(const std::string& name, int64_t least, int64_t most);
    std::optional<float> number(const std::string& name, double least, double most);

    // What changes nothing here.
    void ignore(std::initializer_list<const char*> names);
    // What there is only one value for.
    void only(const std::string& name, const Json& value);
    // The rest is not known.
    void finish() const;

    // Of a member in the request, fit to be shown.
    std::string path(const std::string& name) const;

  private:
    const Json& object_;
    const std::string path_;
    std::set<std::string> taken_;
};

}  // namespace aerie
