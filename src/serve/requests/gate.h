// Decides from the head of a request whether it is allowed and where it goes, before anything is
// done for it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "serve/requests/problem.h"

namespace aerie {

class Exchange;
class Service;
struct HttpRequest;

constexpr uint64_t kMaxBodyBytes = 8 << 20;

struct HttpHead {
    std::string method, target;
    std::vector<std::pair<std::string, std::string>> fields;  // in the order of the request
    bool is_http_1_1 = true;                                  // else 1.0

    // The value of the only field of that name, whatever its case; nothing if there is none.
    // Throws Problem if there are several.
    std::optional<std::string_view> find(std::string_view name) const;
};

// A row of the server's table of endpoints, src/serve/endpoints.cpp.
struct Endpoint {
    // Whether a client must show the API key, if there is one. Monitors such as load balancers have
    // none; they are answered even where other clients find no place, and do not keep a server
    // alive that is ending.
    enum class Access { with_key, without_key, monitor };
    // A request is answered at once, by the thread of the sockets; or by a worker; or it is read by
    // a worker and then answered when its turn comes.
    enum class Run { at_once, by_worker, in_turn };

    // "/health"; or "/v1/models/*", where * stands for one byte or more. "*": the preflights of any
    // path.
    std::string_view path;
    std::string_view method;  // HEAD is taken, too, where it is GET
    std::string_view name;    // in metrics
    Access access = Access::with_key;
    Run run = Run::at_once;
    // Gives the exchange its reply, at once or later. Throws Problem.
    void (Service::*answer)(const HttpRequest&, const std::shared_ptr<Exchange>&) = nullptr;
};

class Gate {
  public:
    explicit Gate(std::span<const Endpoint> endpoints) : endpoints_(endpoints) {}

    std::vector<std::string> hosts;    // values of Host, whatever their case
    std::vector<std::string> origins;  // exact values of Origin
    std::string api_key;               // empty: no key is asked for

    // The endpoint of the request; HEAD goes where GET does. Throws Problem if it is not allowed.
    const Endpoint& admit(const HttpHead& head) const;
    // The endpoint at the path of a target; nullptr if there is none.
    const Endpoint* find(std::string_view target) const;
    // The Origin of a request if it is one of `origins` and the request came by one of `hosts`: its
    // page may read the reply, refusals included. Empty otherwise.
    std::string_view page_that_asks(const HttpHead& head) const;
    // Adds the names under which a server at this address and port is reached, and the origin of
    // its pages.
    void add_address(const std::string& host, int port);

  private:
    Problem unknown_url(std::string_view target) const;
    const Endpoint& preflight() const;
    bool is_for_us(const HttpHead& head) const;
    void check_names(const HttpHead& head) const;
    void check_key(const HttpHead& head) const;

    std::span<const Endpoint> endpoints_;
};

// Throws Problem if programs could disagree on where the request ends. No other request may follow
// it on its connection.
void check_framing(const HttpHead& head);
// Whether the client waits for "100 Continue" before it sends the body. Throws Problem if it
// expects something else.
bool expects_continue(const HttpHead& head);
// The CORS fields of a reply to the page at `origin`; empty if `origin` is.
std::string page_fields(std::string_view origin, const HttpHead& head);

// The bytes of a target's path that the * of its endpoint stands for, decoded. Throws Problem if
// they are percent-encoded wrongly.
std::string rest_of_path(const Endpoint& endpoint, std::string_view target);

// The error of a body that is larger than kMaxBodyBytes.
Problem body_too_large();

// The key that a request carries (Authorization: Bearer KEY); empty: none. Throws Problem.
std::string_view key_of(const HttpHead& head);
// Takes the same time wherever the two differ; only the length of `given` can be seen from it.
bool same_key(std::string_view given, std::string_view key);

}  // namespace aerie
