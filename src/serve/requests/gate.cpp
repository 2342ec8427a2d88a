#include "serve/requests/gate.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace aerie {

namespace {

constexpr size_t kMaxFields = 100;

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

// Host names are compared without case.
bool has_host(const std::vector<std::string>& hosts, std::string_view host) {
    return std::any_of(hosts.begin(), hosts.end(),
                       [&](const std::string& one) { return same_name(one, host); });
}

bool is_digits(std::string_view text) {
    return !text.empty() &&
           std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// A name of a header field: RFC 9110, 5.6.2.
bool is_token(std::string_view text) {
    static constexpr std::string_view kSigns = "!#$%&'*+-.^_`|~";
    return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
        return (c >= '0' && c <= '9') || (lower(c) >= 'a' && lower(c) <= 'z') ||
               kSigns.find(c) != kSigns.npos;
    });
}

// The host and port of a target that is a whole URL (RFC 9112, 3.2.2); nothing if it is a path.
std::optional<std::string_view> authority_of(std::string_view target) {
    for (const std::string_view scheme : {"http://", "https://"})
        if (same_name(target.substr(0, scheme.size()), scheme)) {
            target.remove_prefix(scheme.size());
            return target.substr(0, target.find_first_of("/?"));
        }
    return {};
}

// The path of a target, without its query.
std::string_view path_of(std::string_view target) {
    if (const auto authority = authority_of(target)) {
        target.remove_prefix(size_t(authority->data() + authority->size() - target.data()));
        if (!target.starts_with('/')) return "/";
    }
    return target.substr(0, target.find('?'));
}

bool is_at(const Endpoint& endpoint, std::string_view path) {
    std::string_view start = endpoint.path;
    if (!start.ends_with("/*")) return path == start;
    start.remove_suffix(1);
    return path.size() > start.size() && path.starts_with(start);
}

bool takes(const Endpoint& endpoint, std::string_view method) {
    return method == endpoint.method || (method == "HEAD" && endpoint.method == "GET");
}

Problem wrong_method(const Endpoint& endpoint) {
    Problem problem(405, "method_not_allowed", "this path takes " + std::string(endpoint.method));
    problem.allow = endpoint.method;
    if (endpoint.method == "GET") problem.allow += ", HEAD";
    return problem;
}

void check_coding(const HttpHead& head) {
    const auto encoding = head.find("content-encoding");
    if (encoding && !same_name(*encoding, "identity"))
        throw Problem(415, "unsupported_media_type", "requests may not be compressed");
}

void check_size(const HttpHead& head) {
    const std::string_view length = head.find("content-length").value_or("0");
    uint64_t bytes = 0;
    const auto read = std::from_chars(length.data(), length.data() + length.size(), bytes);
    if (read.ec != std::errc() || bytes > kMaxBodyBytes) throw body_too_large();
}

void check_type(const HttpHead& head) {
    const std::string_view value = head.find("content-type").value_or("");
    const size_t end = value.find(';');
    const std::string_view rest =
        end == std::string_view::npos ? "" : trimmed(value.substr(end + 1));
    // Some clients write the name without its hyphen.
    constexpr std::array<std::string_view, 5> kPlain = {"", "charset=utf-8", "charset=\"utf-8\"",
                                                        "charset=utf8", "charset=\"utf8\""};
    const bool is_plain =
        std::any_of(kPlain.begin(), kPlain.end(), [&](auto name) { return same_name(rest, name); });
    if (!same_name(trimmed(value.substr(0, end)), "application/json") || !is_plain)
        throw Problem(415, "unsupported_media_type",
                      "the Content-Type must be application/json: with curl, -H 'Content-Type: "
                      "application/json'");
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
    // Volatile, so that the compiler cannot stop before the end.
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

// The length of a body must be given once, and in a way that every program reads alike: RFC 9112,
// 6.1 and 6.3.
void check_framing(const HttpHead& head) {
    const auto length = head.find("content-length"), coding = head.find("transfer-encoding");
    const auto refuse = [](const char* why) { throw bad_request(why, "", "invalid_header"); };
    if (length && coding) refuse("Content-Length and Transfer-Encoding exclude each other");
    if (length && !is_digits(*length)) refuse("the Content-Length is no number");
    if (coding && !same_name(*coding, "chunked")) refuse("the only Transfer-Encoding is chunked");
    if (coding && !head.is_http_1_1) refuse("HTTP/1.0 has no Transfer-Encoding");
}

bool expects_continue(const HttpHead& head) {
    if (!head.is_http_1_1) return false;  // RFC 9110, 10.1.1
    const auto expected = head.find("expect");
    if (expected && !same_name(*expected, "100-continue"))
        throw bad_request("unknown Expect", "", "invalid_header");
    return expected.has_value();
}

// A target that is a whole URL names the host that is asked, and then the Host field counts for
// nothing.
bool Gate::is_for_us(const HttpHead& head) const {
    const auto host = head.find("host");
    if (!host) throw bad_request("the Host header is missing", "", "invalid_header");
    return has_host(hosts, authority_of(head.target).value_or(*host));
}

std::string_view Gate::page_that_asks(const HttpHead& head) const {
    try {
        const auto origin = head.find("origin");
        if (origin && has(origins, *origin) && is_for_us(head)) return *origin;
    } catch (const Problem&) {  // such as two Origins: its page is not known
    }
    return "";
}

void Gate::check_names(const HttpHead& head) const {
    if (!is_for_us(head)) {
        if (authority_of(head.target)) throw unknown_url(head.target);
        throw Problem(403, "host_not_allowed",
                      "this server does not go by that Host: to add it, start the server with "
                      "--allow-host");
    }
    const auto origin = head.find("origin");
    if (origin && !has(origins, *origin))
        throw Problem(403, "origin_not_allowed",
                      "pages of that Origin may not ask here: to let them, start the server with "
                      "--allow-origin");
}

std::string_view key_of(const HttpHead& head) {
    const std::string_view given = head.find("authorization").value_or("");
    constexpr std::string_view kBearer = "Bearer ";
    if (!same_name(given.substr(0, kBearer.size()), kBearer)) return "";
    const size_t first = given.find_first_not_of(' ', kBearer.size());
    return first == std::string_view::npos ? "" : given.substr(first);
}

void Gate::check_key(const HttpHead& head) const {
    if (!same_key(key_of(head), api_key))
        throw Problem(401, "invalid_api_key", "the API key is missing or wrong");
}

const Endpoint* Gate::find(std::string_view target) const {
    const std::string_view path = path_of(target);
    if (!path.starts_with('/')) return nullptr;
    const auto found = std::find_if(endpoints_.begin(), endpoints_.end(),
                                    [&](const Endpoint& each) { return is_at(each, path); });
    return found == endpoints_.end() ? nullptr : &*found;
}

// Many clients are given the address of the server without /v1.
Problem Gate::unknown_url(std::string_view target) const {
    const bool lacks_version = find("/v1" + std::string(path_of(target)));
    return {404, "unknown_url",
            std::string("there is nothing at this path") +
                (lacks_version ? "; put /v1 in front of it" : "")};
}

const Endpoint& Gate::preflight() const {
    return *std::find_if(endpoints_.begin(), endpoints_.end(),
                         [](const Endpoint& each) { return each.path == "*"; });
}

const Endpoint& Gate::admit(const HttpHead& head) const {
    if (head.fields.size() > kMaxFields)
        throw Problem(431, "headers_too_large",
                      "more than " + std::to_string(kMaxFields) + " headers");
    check_names(head);
    // For any path: a page learns nothing of a request whose preflight fails, not even a 404.
    if (head.method == "OPTIONS" && head.find("origin")) return preflight();
    check_framing(head);
    check_coding(head);
    const Endpoint* endpoint = find(head.target);
    if (!endpoint) throw unknown_url(head.target);
    if (!api_key.empty() && endpoint->access == Endpoint::Access::with_key) check_key(head);
    if (!takes(*endpoint, head.method)) throw wrong_method(*endpoint);
    if (endpoint->method == "POST") check_type(head);
    check_size(head);
    return *endpoint;
}

std::string page_fields(std::string_view origin, const HttpHead& head) {
    if (origin.empty()) return "";
    std::string headers = "Authorization, Content-Type";
    for (const auto& [name, value] : head.fields) {
        if (!same_name(name, "access-control-request-headers")) continue;
        // Every field that the page wants to send is allowed: the page may ask, and OpenAI's
        // clients add many fields.
        for (std::string_view rest = value; !rest.empty();) {
            const std::string_view asked = trimmed(rest.substr(0, rest.find(',')));
            if (is_token(asked)) headers.append(", ").append(asked);
            rest.remove_prefix(std::min(rest.size(), rest.find(',')));
            if (!rest.empty()) rest.remove_prefix(1);
        }
    }
    return "Access-Control-Allow-Origin: " + std::string(origin) +
           "\r\nVary: Origin\r\nAccess-Control-Allow-Methods: GET, POST\r\n"
           "Access-Control-Allow-Headers: " +
           headers + "\r\n";
}

std::string rest_of_path(const Endpoint& endpoint, std::string_view target) {
    const std::string_view path = path_of(target);
    const std::string_view name = path.substr(std::min(endpoint.path.find('*'), path.size()));
    std::string decoded;
    for (size_t i = 0; i < name.size(); ++i) {
        decoded += name[i];
        if (name[i] != '%') continue;
        unsigned char byte = 0;
        const char* digits = name.data() + i + 1;
        const char* end = digits + std::min<size_t>(2, name.size() - i - 1);
        const auto read = std::from_chars(digits, end, byte, 16);
        if (read.ec != std::errc() || read.ptr != digits + 2)
            throw bad_request("the path is percent-encoded wrongly", "", "invalid_url");
        decoded.back() = char(byte);
        i += 2;
    }
    return decoded;
}

Problem body_too_large() {
    return {413, "request_too_large", "the body is larger than 8 MB"};
}

}  // namespace aerie
