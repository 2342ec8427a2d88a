// Who may ask for what: decided by the head of a request, before anything is done for it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace aerie {

struct HttpHead {
    std::string method, target;
    std::vector<std::pair<std::string, std::string>> fields;  // as they came

    // The value of the only field of that name, whatever its case; nothing if there is none.
    // Throws Problem if there are several.
    std::optional<std::string_view> find(std::string_view name) const;
};

enum class Endpoint {
    page,
    health,
    metrics,
    models,
    model,
    tokenize,
    chat,
    completions,
    preflight
};

struct Gate {
    std::vector<std::string> hosts;    // exact values of Host
    std::vector<std::string> origins;  // exact values of Origin
    std::string api_key;               // empty: none is asked for

    // Where the request goes. Throws Problem.
    Endpoint admit(const HttpHead& head) const;
    // The names under which a server at this address and port is reached, and the pages from there.
    void add_address(const std::string& host, int port);
};

// What a path takes; empty if there is none.
std::string_view method_of(std::string_view target);
// The name of the model that a request of Endpoint::model is about.
std::string model_in(std::string_view target);

// Takes the same time wherever they differ; how long `given` is may be seen.
bool same_key(std::string_view given, std::string_view key);

}  // namespace aerie
