#include "serve/endpoints.h"

#include "serve/service.h"

namespace aerie {

std::span<const Endpoint> endpoints() {
    using enum Endpoint::Access;
    using enum Endpoint::Run;
    // A page is loaded by a browser, and a preflight is sent by one: neither has a key.
    static constexpr Endpoint kEndpoints[] = {
        {"/", "GET", "/", without_key, at_once, &Service::page},
        {"/health", "GET", "/health", monitor, at_once, &Service::health},
        {"/metrics", "GET", "/metrics", with_key, at_once, &Service::metrics},
        {"/v1/models", "GET", "/v1/models", with_key, at_once, &Service::models},
        {"/v1/models/*", "GET", "/v1/models", with_key, at_once, &Service::model},
        {"/tokenize", "POST", "/tokenize", with_key, by_worker, &Service::tokenize},
        {"/v1/chat/completions", "POST", "/v1/chat/completions", with_key, in_turn, &Service::chat},
        {"/v1/completions", "POST", "/v1/completions", with_key, in_turn, &Service::completions},
        {"*", "OPTIONS", "preflight", without_key, at_once, &Service::preflight}};
    return kEndpoints;
}

}  // namespace aerie
