#include "serve/requests/gate.h"

#include <algorithm>

#include "serve/requests/problem.h"

namespace aerie {

namespace {

constexpr size_t kMaxFields = 100;
constexpr std::string_view kModels = "/v1/models/";

char lower(char c) {
    return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c;
}

bool same_name(std::string_view a, std::string_view b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](char x, char y) { return lower(x) == lower(y); });
}

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
    return text;
}

bool has(const std::vector<std::string>& list, std::string_view text) {
    return std::find(list.begin(), list.end(), text) != list.end();
}

struct Place {
    std::string_view path, method;
    Endpoint endpoint;
};
constexpr Place kPlaces[] = {{"/", "GET", Endpoint::page},
                             {"/health", "GET", Endpoint::health},
                             {"/metrics", "GET", Endpoint::metrics},
                             {"/v1/models", "GET", Endpoint::models},
                             {"/tokenize", "POST", Endpoint::tokenize},
                             {"/v1/chat/completions", "POST", Endpoint::chat},
                             {"/v1/completions", "POST", Endpoint::completions}};

std::optional<Place> place_of(std::string_view target) {
    const std::string_view path = target.substr(0, target.find('?'));
    for (const Place& place : kPlaces)
        if (place.path == path) return place;
    if (path.size() > kModels.size() && path.starts_with(kModels))
        return Place{path, "GET", Endpoint::model};
    return {};
}

// What says how long the body is must say it once, and in a way that everybody reads alike.
void check_framing(const HttpHead& head) {
    const auto length = head.find("content-length"), coding = head.find("transfer-encoding");
    if (length && coding)
        throw bad_request("Content-Length and Transfer-Encoding exclude each other", "",
                          "invalid_header");
    if (coding && !same_name(*coding, "chunked"))
        throw bad_request("the only Transfer-Encoding is chunked", "", "invalid_header");
    const auto encoding = head.find("content-encoding");
    if (encoding && !same_name(*encoding, "identity"))
        throw Problem(415, "unsupported_media_type", "requests may not be compressed");
}

void check_type(const HttpHead& head) {
    const std::string_view value = head.find("content-type").value_or("");
    const size_t end = value.find(';');
    const std::string_view rest =
        end == std::string_view::npos ? "" : trimmed(value.substr(end + 1));
    const bool is_plain =
        rest.empty() || same_name(rest, "charset=utf-8") || same_name(rest, "charset=\"utf-8\"");
    if (!same_name(trimmed(value.substr(0, end)), "application/json") || !is_plain)
        throw Problem(415, "unsupported_media_type", "the Content-Type must be application/json");
}

}  // namespace

std::optional<std::string_view> HttpHead::find(std::string_view name) const {
    std::optional<std::string_view> found;
    for (const auto& [key, value] : fields) {
        if (!same_name(key, name)) continue;
        if (found)
            throw bad_request("the header " + std::string(name) + " is given twice", "",
                              "invalid_header");
        found = trimmed(value);
    }
    return found;
}

bool same_key(std::string_view given, std::string_view key) {
    // Volatile: nothing is known of it before the end.
    volatile unsigned char difference = given.size() == key.size() ? 0 : 1;
    for (size_t i = 0; i < given.size(); ++i) {
        const char with = key.empty() ? '\0' : key[i % key.size()];
        difference = (unsigned char)(difference | ((unsigned char)given[i] ^ (unsigned char)with));
    }
    return difference == 0;
}

void Gate::add_address(const std::string& host, int port) {
    const std::string name = host.find(':') == std::string::npos ? host : "[" + host + "]";
    hosts.push_back(name + ":" + std::to_string(port));
    if (port == 80) hosts.push_back(name);
    origins.push_back("http://" + hosts.back());
}

Endpoint Gate::admit(const HttpHead& head) const {
    if (head.fields.size() > kMaxFields)
        throw Problem(431, "headers_too_large",
                      "more than " + std::to_string(kMaxFields) + " headers");
    const auto host = head.find("host");
    if (!host) throw bad_request("the Host header is missing", "", "invalid_header");
    if (!has(hosts, *host))
        throw Problem(403, "host_not_allowed", "this server does not go by that Host");
    const auto origin = head.find("origin");
    if (origin && !has(origins, *origin))
        throw Problem(403, "origin_not_allowed", "pages of that Origin may not ask here");
    check_framing(head);
    const auto found = place_of(head.target);
    if (!found) throw Problem(404, "unknown_url", "there is nothing at this path");
    const Place& place = *found;
    if (head.method == "OPTIONS" && origin) return Endpoint::preflight;
    // A page is loaded by a browser, health is asked for by balancers: neither has a key.
    if (!api_key.empty() && place.endpoint != Endpoint::page &&
        place.endpoint != Endpoint::health) {
        const std::string_view given = head.find("authorization").value_or("");
        constexpr std::string_view kBearer = "Bearer ";
        if (!same_name(given.substr(0, kBearer.size()), kBearer) ||
            !same_key(given.substr(kBearer.size()), api_key))
            throw Problem(401, "invalid_api_key", "the API key is missing or wrong");
    }
    if (head.method != place.method)
        throw Problem(405, "method_not_allowed", "this path takes " + std::string(place.method));
    if (place.method == "POST") check_type(head);
    return place.endpoint;
}

std::string_view method_of(std::string_view target) {
    const auto place = place_of(target);
    return place ? place->method : "";
}

std::string model_in(std::string_view target) {
    target = target.substr(0, target.find('?'));
    return std::string(target.substr(std::min(kModels.size(), target.size())));
}

}  // namespace aerie
