// Who is let in: Host, Origin, key, path, method and type, in this order.
#include "serve/requests/gate.h"

#include <gtest/gtest.h>

#include "serve/requests/problem.h"

namespace aerie {
namespace {

using Fields = std::vector<std::pair<std::string, std::string>>;

Gate gate(const std::string& key = "") {
    Gate gate;
    gate.api_key = key;
    gate.add_address("127.0.0.1", 8080);
    gate.add_address("::1", 8080);
    return gate;
}

// 200, or the status of the refusal.
int status(const Gate& gate, const std::string& method, const std::string& target, Fields fields) {
    try {
        gate.admit({method, target, std::move(fields)});
    } catch (const Problem& problem) {
        return problem.status;
    }
    return 200;
}

int get(const std::string& target, Fields further = {}) {
    Fields fields = {{"Host", "127.0.0.1:8080"}};
    fields.insert(fields.end(), further.begin(), further.end());
    return status(gate(), "GET", target, fields);
}

int post(Fields further, const Gate& gate = aerie::gate()) {
    Fields fields = {{"host", "127.0.0.1:8080"}};
    fields.insert(fields.end(), further.begin(), further.end());
    return status(gate, "POST", "/v1/completions", fields);
}

const std::pair<std::string, std::string> kJson = {"Content-Type", "application/json"};

TEST(Gate, TakesExactHostsOnly) {
    const auto with = [](const std::string& host) {
        return status(gate(), "GET", "/health", {{"Host", host}});
    };
    EXPECT_EQ(with("127.0.0.1:8080"), 200);
    EXPECT_EQ(with("[::1]:8080"), 200);
    for (const char* host : {"127.0.0.1", "127.0.0.1:80", "localhost:8080", "evil.example:8080",
                             "127.0.0.1:8080.evil.example", "127.0.0.1:8080,evil", "[::1]", ""})
        EXPECT_EQ(with(host), 403) << host;
    EXPECT_EQ(status(gate(), "GET", "/health", {}), 400);
    EXPECT_EQ(get("/health", {{"HOST", "127.0.0.1:8080"}}), 400);
}

TEST(Gate, TakesItsOwnPagesOnly) {
    EXPECT_EQ(get("/health", {{"Origin", "http://127.0.0.1:8080"}}), 200);
    for (const char* origin : {"null", "http://127.0.0.1", "https://127.0.0.1:8080",
                               "http://127.0.0.1:8080/", "http://evil.example", ""})
        EXPECT_EQ(get("/health", {{"Origin", origin}}), 403) << origin;
    EXPECT_EQ(get("/", {{"Origin", "http://evil.example"}}), 403);
}

TEST(Gate, WantsJsonAndNothingElse) {
    EXPECT_EQ(post({kJson}), 200);
    EXPECT_EQ(post({{"content-type", " Application/JSON ; charset=UTF-8 "}}), 200);
    for (const char* type : {"", "text/plain", "application/jsonp", "application/json, text/plain",
                             "multipart/form-data", "application/json; charset=latin1"})
        EXPECT_EQ(post({{"Content-Type", type}}), 415) << type;
    EXPECT_EQ(post({}), 415);
    EXPECT_EQ(post({kJson, kJson}), 400);
    EXPECT_EQ(post({kJson, {"Content-Encoding", "gzip"}}), 415);
    EXPECT_EQ(post({kJson, {"Content-Encoding", "identity"}}), 200);
}

TEST(Gate, WantsLengthsThatEverybodyReadsAlike) {
    EXPECT_EQ(post({kJson, {"Content-Length", "2"}}), 200);
    EXPECT_EQ(post({kJson, {"Transfer-Encoding", "chunked"}}), 200);
    EXPECT_EQ(post({kJson, {"Content-Length", "2"}, {"Transfer-Encoding", "chunked"}}), 400);
    EXPECT_EQ(post({kJson, {"Content-Length", "2"}, {"Content-Length", "2"}}), 400);
    EXPECT_EQ(post({kJson, {"Transfer-Encoding", "gzip, chunked"}}), 400);
}

TEST(Gate, CountsHeaders) {
    Fields fields(99, {"x", "y"});
    EXPECT_EQ(get("/health", fields), 200);
    fields.emplace_back("x", "y");
    EXPECT_EQ(get("/health", fields), 431);
}

TEST(Gate, WantsTheKeyButForHealthAndThePage) {
    const Gate locked = gate("secret");
    const auto with = [&](const std::string& value) {
        return post({kJson, {"Authorization", value}}, locked);
    };
    EXPECT_EQ(with("Bearer secret"), 200);
    EXPECT_EQ(with("bearer secret"), 200);
    for (const char* value : {"", "Bearer", "Bearer ", "secret", "Basic secret", "Bearer secre",
                              "Bearer secret2", "Bearer Secret", "Bearer secretsecret"})
        EXPECT_EQ(with(value), 401) << value;
    EXPECT_EQ(post({kJson}, locked), 401);
    const Fields host = {{"Host", "127.0.0.1:8080"}};
    for (const char* path : {"/metrics", "/v1/models"})
        EXPECT_EQ(status(locked, "GET", path, host), 401) << path;
    for (const char* path : {"/health", "/"})
        EXPECT_EQ(status(locked, "GET", path, host), 200) << path;
}

TEST(Gate, KnowsItsPaths) {
    EXPECT_EQ(get("/v1/models?x=1"), 200);
    EXPECT_EQ(get("/v1/models/aerie-tiny"), 200);
    for (const char* path : {"", "*", "/../etc/passwd", "/v1/models/", "/index.html", "//",
                             "/health/", "/%2e%2e/", "http://127.0.0.1:8080/health"})
        EXPECT_EQ(get(path), 404) << path;
    EXPECT_EQ(get("/v1/completions"), 405);
    EXPECT_EQ(status(gate(), "POST", "/health", {{"Host", "127.0.0.1:8080"}, kJson}), 405);
    EXPECT_EQ(status(gate(), "DELETE", "/v1/models/x", {{"Host", "127.0.0.1:8080"}}), 405);
    EXPECT_EQ(status(gate(), "OPTIONS", "/v1/completions", {{"Host", "127.0.0.1:8080"}}), 405);
    EXPECT_EQ(model_in("/v1/models/aerie-tiny?x"), "aerie-tiny");
    EXPECT_EQ(method_of("/tokenize?x"), "POST");
    EXPECT_EQ(method_of("/v1/models/x"), "GET");
    EXPECT_EQ(method_of("/x"), "");
}

TEST(Gate, PreflightIsForListedPages) {
    const Gate locked = gate("secret");
    const Fields own = {{"Host", "127.0.0.1:8080"}, {"Origin", "http://127.0.0.1:8080"}};
    EXPECT_EQ(locked.admit({"OPTIONS", "/v1/completions", own}), Endpoint::preflight);
}

TEST(SameKey, IsEquality) {
    EXPECT_TRUE(same_key("abc", "abc"));
    EXPECT_FALSE(same_key("abcabc", "abc"));
    EXPECT_FALSE(same_key("", "abc"));
    EXPECT_FALSE(same_key("abd", "abc"));
}

}  // namespace
}  // namespace aerie
