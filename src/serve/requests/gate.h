// Decides from the head of a request whether it is allowed and where it goes, before anything is
// done for it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "serve/requests/problem.h"

namespace aerie {

constexpr uint64_t kMaxBodyBytes = 8 << 20;

struct HttpHead {
    std::string method, target;
    std::vector<std::pair<std::string, std::string>> fields;  // in the order of the request
    bool is_http_1_1 = true;                                  // else 1.0

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

class Gate {
  public:
    std::vector<std::string> hosts;    // values of Host, whatever their case
    std::vector<std::string> origins;  // exact values of Origin
    std::string api_key;               // empty: no key is asked for

    // The endpoint of the request; HEAD goes where GET does. Throws Problem if it is not allowed.
    Endpoint admit(const HttpHead& head) const;
    // The Origin of a request if it is one of `origins` and the request came by one of `hosts`: its
    // page may read the reply, refusals included. Empty otherwise.
    std::string_view page_that_asks(const HttpHead& head) const;
    // Adds the names under which a server at this address and port is reached, and the origin of
    // its pages.
    void add_address(const std::string& host, int port);

  private:
    bool is_for_us(const HttpHead& head) const;
    void check_names(const HttpHead& head) const;
    void check_key(const HttpHead& head) const;
};

// Throws Problem if programs could disagree on where the request ends. No other request may follow
// it on its connection.
void check_framing(const HttpHead& head);
// Whether the client waits for "100 Continue" before it sends the body. Throws Problem if it
// expects something else.
bool expects_continue(const HttpHead& head);
// The CORS fields of a reply to the page at `origin`; empty if `origin` is.
std::string page_fields(std::string_view origin, const HttpHead& head);

// The method that a path takes (HEAD is taken, too, where it is GET); empty if there is no such
// path.
std::string_view method_of(std::string_view target);
// The name of the model that a request of Endpoint::model is about. Throws Problem if it is
// percent-encoded wrongly.
std::string model_in(std::string_view target);

// The error of a body that is larger than kMaxBodyBytes.
Problem body_too_large();

// Takes the same time wherever the two differ; only the length of `given` can be seen from it.
bool same_key(std::string_view given, std::string_view key);

}  // namespace aerie
