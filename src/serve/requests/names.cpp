#include "serve/requests/names.h"

#include <algorithm>
#include <charconv>

#include "core/utf8.h"

namespace aerie {

namespace {

constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz", kDecimalDigits = "0123456789";

bool is_made_of(std::string_view text, std::string_view first, std::string_view second,
                std::string_view third = "") {
    return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
        return first.find(c) != first.npos || second.find(c) != second.npos ||
               third.find(c) != third.npos;
    });
}

std::string in_lower_case(std::string_view text) {
    std::string lower(text);
    for (char& c : lower)
        if (c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
    return lower;
}

bool is_port(std::string_view text) {
    int port = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), port);
    return is_made_of(text, kDecimalDigits, "") && text.front() != '0' && read.ec == std::errc() &&
           port <= 65535;
}

// A name or an address in lower case, and perhaps a port.
bool is_authority(std::string_view text) {
    const size_t bracket = text.find(']');
    const size_t colon = text.find(':', bracket == text.npos ? 0 : bracket);
    if (colon != text.npos && !is_port(text.substr(colon + 1))) return false;
    const std::string_view host = text.substr(0, colon);
    if (host.starts_with('['))
        return host.ends_with(']') &&
               is_made_of(host.substr(1, host.size() - 2), "abcdef", kDecimalDigits, ":.");
    return is_made_of(host, kLetters, kDecimalDigits, "-_.") && !host.starts_with('.') &&
           host.find("..") == host.npos;
}

bool is_web(std::string_view scheme) {
    return scheme == "http" || scheme == "https";
}

// The origin of a page at this URL, as a browser would write it; empty if `url` is not a URL.
std::string as_sent(std::string_view url) {
    const size_t at = url.find("://");
    if (at == url.npos) return "";
    const std::string scheme = in_lower_case(url.substr(0, at));
    std::string_view given = url.substr(at + 3);
    given = given.substr(0, given.find_first_of("/?#"));
    std::string authority = in_lower_case(given);
    const std::string own_port = scheme == "http" ? ":80" : ":443";
    if (is_web(scheme) && authority.ends_with(own_port))
        authority.resize(authority.size() - own_port.size());
    if (!is_made_of(scheme, kLetters, kDecimalDigits, "+-.") || !is_authority(authority)) return "";
    return scheme + "://" + (is_web(scheme) ? authority : std::string(given));
}

}  // namespace

std::string fault_of_key(std::string_view key) {
    if (key.empty()) return "is empty; give one, or leave it out";
    const bool can_be_sent = std::all_of(key.begin(), key.end(), [](char c) {
        return (unsigned char)c > ' ' && (unsigned char)c < 0x7F;
    });
    return can_be_sent
               ? ""
               : "has other characters than visible ones of ASCII; take such, without spaces";
}

std::string fault_of_host(std::string_view host) {
    if (is_authority(in_lower_case(host))) return "";
    return "expected a host as clients name it, such as chat.example.com or chat.example.com:8443, "
           "not " +
           in_quotes(host);
}

std::string fault_of_origin(std::string_view origin) {
    const std::string sent = as_sent(origin);
    if (!sent.empty() && sent == origin) return "";
    return "expected an origin as browsers send it, such as " +
           (sent.empty() ? "https://chat.example.com" : sent) + ", not " + in_quotes(origin);
}

std::string fault_of_model_name(std::string_view name) {
    const bool is_blank = name.find_first_not_of(' ') == name.npos;
    if (!is_blank && is_utf8(name) && printable(name) == name) return "";
    return "expected a name for clients, of UTF-8 without control characters, not " +
           in_quotes(name);
}

}  // namespace aerie
