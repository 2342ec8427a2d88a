// Requests that the gate lets in: Host, Origin, key, path, method and type, checked in this order.
#include "serve/requests/gate.h"

#include <gtest/gtest.h>

#include "serve/endpoints.h"
#include "serve/requests/problem.h"

namespace aerie {
namespace {

using Fields = std::vector<std::pair<std::string, std::string>>;

Gate gate(const std::string& key = "") {
    Gate gate(endpoints());
    gate.api_key = key;
    gate.add_address("127.0.0.1", 8080);
    gate.add_address("::1", 8080);
    return gate;
}

std::string_view name_of(const Gate& gate, const HttpHead& head) {
    return gate.admit(head).name;
}

// The model that a target names.
std::string model_in(const std::string& target) {
    return rest_of_path(*gate().find(target), target);
}

// The methods of a path, from the refusal of another one.
std::string allowed_at(const std::string& target) {
    try {
        gate().admit({"DELETE", target, {{"Host", "127.0.0.1:8080"}}});
    } catch (const Problem& problem) {
        return problem.allow;
    }
    return "all";
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

TEST(Gate, HostsHaveNoCase) {
    Gate named = gate();
    named.hosts.push_back("Chat.Example.com");
    named.add_address("fe80::a", 8080);
    for (const char* host : {"chat.example.com", "CHAT.EXAMPLE.COM", "[FE80::A]:8080"})
        EXPECT_EQ(status(named, "GET", "/health", {{"Host", host}}), 200) << host;
}

// RFC 9112, 3.2.2: the host of a whole URL counts, and that of the Host field does not.
TEST(Gate, TakesWholeUrls) {
    const auto ask = [](const std::string& target, const std::string& host) {
        return status(gate(), "GET", target, {{"Host", host}});
    };
    for (const char* target :
         {"http://127.0.0.1:8080/health", "HTTP://127.0.0.1:8080/health?x=http://y/",
          "https://[::1]:8080/v1/models", "http://127.0.0.1:8080", "http://127.0.0.1:8080?x",
          "http://127.0.0.1:8080/", "http://127.0.0.1:8080/v1/models/a"}) {
        EXPECT_EQ(ask(target, "127.0.0.1:8080"), 200) << target;
        EXPECT_EQ(ask(target, "evil.example"), 200) << target;
    }
    for (const char* target :
         {"http://evil.example/health", "http://127.0.0.1/health", "http://x@127.0.0.1:8080/health",
          "http:///health", "http://", "ftp://127.0.0.1:8080/health", "//127.0.0.1:8080/health"})
        EXPECT_EQ(ask(target, "127.0.0.1:8080"), 404) << target;
    EXPECT_EQ(status(gate(), "GET", "http://127.0.0.1:8080/health", {}), 400);
    EXPECT_EQ(model_in("http://127.0.0.1:8080/v1/models/a%2Fb?x"), "a/b");
    EXPECT_EQ(allowed_at("http://127.0.0.1:8080/tokenize"), "POST");
}

TEST(Gate, TakesHeadWhereGetIs) {
    const Fields host = {{"Host", "127.0.0.1:8080"}};
    for (const char* path : {"/", "/health", "/metrics", "/v1/models", "/v1/models/x"})
        EXPECT_EQ(&gate().admit({"HEAD", path, host}), &gate().admit({"GET", path, host})) << path;
    for (const char* path : {"/tokenize", "/v1/completions", "/v1/chat/completions"})
        EXPECT_EQ(status(gate(), "HEAD", path, host), 405) << path;
    EXPECT_EQ(status(gate(), "HEAD", "/x", host), 404);
    EXPECT_EQ(status(gate(), "head", "/", host), 405);
    EXPECT_EQ(status(gate("key"), "HEAD", "/metrics", host), 401);
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
    EXPECT_EQ(post({{"content-type", "application/json; charset=utf8"}}), 200);
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
    for (const char* length : {"", "+2", "-2", "2, 2", "2,2", "2 2", "0x2", "2.0", "two"})
        EXPECT_EQ(post({kJson, {"Content-Length", length}}), 400) << length;
    for (const char* coding : {"", "xchunked", "chunked, chunked", "chunked, identity",
                               "\"chunked\"", "identity", "chunked;x=y"})
        EXPECT_EQ(post({kJson, {"Transfer-Encoding", coding}}), 400) << coding;
    const HttpHead old = {"POST", "/tokenize", {{"Transfer-Encoding", "chunked"}}, false};
    EXPECT_THROW(check_framing(old), Problem);
}

TEST(Gate, BoundsBodies) {
    EXPECT_EQ(post({kJson, {"Content-Length", "8388608"}}), 200);
    for (const char* length : {"8388609", "18446744073709551616", "99999999999999999999999"})
        EXPECT_EQ(post({kJson, {"Content-Length", length}}), 413) << length;
}

TEST(Gate, ExpectsAsTheStandardSays) {
    const auto expects = [](Fields fields, bool is_http_1_1 = true) {
        return expects_continue({"POST", "/tokenize", std::move(fields), is_http_1_1});
    };
    EXPECT_FALSE(expects({}));
    EXPECT_TRUE(expects({{"Expect", "100-continue"}}));
    EXPECT_TRUE(expects({{"expect", "100-Continue"}}));
    EXPECT_FALSE(expects({{"Expect", "100-continue"}}, false));
    EXPECT_FALSE(expects({{"Expect", "a-miracle"}}, false));
    EXPECT_THROW(expects({{"Expect", "a-miracle"}}), Problem);
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
                             "/health/", "/%2e%2e/", "/%68ealth", "http://127.0.0.1:8080/x"})
        EXPECT_EQ(get(path), 404) << path;
    EXPECT_EQ(get("/v1/completions"), 405);
    EXPECT_EQ(status(gate(), "POST", "/health", {{"Host", "127.0.0.1:8080"}, kJson}), 405);
    EXPECT_EQ(status(gate(), "DELETE", "/v1/models/x", {{"Host", "127.0.0.1:8080"}}), 405);
    EXPECT_EQ(status(gate(), "OPTIONS", "/v1/completions", {{"Host", "127.0.0.1:8080"}}), 405);
    EXPECT_EQ(model_in("/v1/models/aerie-tiny?x"), "aerie-tiny");
    EXPECT_EQ(allowed_at("/tokenize?x"), "POST");
    EXPECT_EQ(allowed_at("/v1/models/x"), "GET, HEAD");
    EXPECT_EQ(allowed_at("/x"), "");
}

TEST(Gate, TellsThatAPathLacksItsVersion) {
    const auto message_at = [](const std::string& target) -> std::string {
        try {
            gate().admit({"POST", target, {{"Host", "127.0.0.1:8080"}}});
        } catch (const Problem& problem) {
            return problem.what();
        }
        return "";
    };
    const std::string nothing = "there is nothing at this path";
    EXPECT_EQ(message_at("/chat/completions?x"), nothing + "; put /v1 in front of it");
    EXPECT_EQ(message_at("http://127.0.0.1:8080/models"), nothing + "; put /v1 in front of it");
    for (const char* target : {"/x", "/v1/x", "*", "", "/models/"})
        EXPECT_EQ(message_at(target), nothing);
}

TEST(Gate, PreflightIsForListedPages) {
    const Gate locked = gate("secret");
    const Fields own = {{"Host", "127.0.0.1:8080"}, {"Origin", "http://127.0.0.1:8080"}};
    EXPECT_EQ(name_of(locked, {"OPTIONS", "/v1/completions", own}), "preflight");
    // If its preflight failed, a page could not see that there is nothing at this path.
    EXPECT_EQ(name_of(locked, {"OPTIONS", "/v1/embeddings", own}), "preflight");
}

TEST(Gate, KnowsThePagesThatMayRead) {
    const auto page = [](Fields fields, const std::string& target = "/x") {
        return std::string(gate("secret").page_that_asks({"GET", target, std::move(fields)}));
    };
    const std::string own = "http://127.0.0.1:8080";
    const std::pair<std::string, std::string> host = {"Host", "127.0.0.1:8080"};
    EXPECT_EQ(page({host, {"origin", own}}), own);
    EXPECT_EQ(page({{"Host", "evil"}, {"Origin", own}}, own + "/x"), own);
    EXPECT_EQ(page({host}), "");
    EXPECT_EQ(page({{"Origin", own}}), "");
    EXPECT_EQ(page({host, {"Origin", "http://evil.example"}}), "");
    EXPECT_EQ(page({{"Host", "evil.example"}, {"Origin", own}}), "");
    EXPECT_EQ(page({host, {"Origin", own}, {"Origin", own}}), "");
}

std::string allowed_headers(Fields fields) {
    const std::string sent = page_fields("http://a", {"OPTIONS", "/", std::move(fields)});
    EXPECT_TRUE(sent.starts_with("Access-Control-Allow-Origin: http://a\r\nVary: Origin\r\n"));
    const std::string name = "Access-Control-Allow-Headers: ";
    const size_t at = sent.find(name) + name.size();
    return sent.substr(at, sent.find("\r\n", at) - at);
}

TEST(PageFields, LetInWhatPagesAsk) {
    EXPECT_EQ(page_fields("", {"GET", "/", {}}), "");
    EXPECT_EQ(allowed_headers({}), "Authorization, Content-Type");
    const std::string name = "Access-Control-Request-Headers";
    EXPECT_EQ(allowed_headers({{name, "authorization,content-type, x-stainless-os ,"}}),
              "Authorization, Content-Type, authorization, content-type, x-stainless-os");
    EXPECT_EQ(allowed_headers({{"access-control-request-headers", "x-a"}, {name, "x-b"}}),
              "Authorization, Content-Type, x-a, x-b");
    EXPECT_EQ(allowed_headers({{name, "a b,c:d,\"e\",,;,\xE9,f"}}),
              "Authorization, Content-Type, f");
}

TEST(ModelIn, Decodes) {
    EXPECT_EQ(model_in("/v1/models/a%2Db%20c"), "a-b c");
    EXPECT_EQ(model_in("/v1/models/org%2fname?x=%"), "org/name");
    EXPECT_EQ(model_in("/v1/models/%C3%A9%3f+%00"), std::string("\xC3\xA9?+\0", 5));
    EXPECT_EQ(model_in("/v1/models/%2541"), "%41");
    for (const char* name : {"%", "a%", "%2", "%2g", "%g2", "%+2", "% 2", "%-1", "%%41"})
        EXPECT_THROW(model_in(std::string("/v1/models/") + name), Problem) << name;
}

// Every endpoint is found at its path and nowhere else, and can be answered.
TEST(Endpoints, AreRowsOfATable) {
    for (const Endpoint& endpoint : endpoints()) {
        EXPECT_TRUE(endpoint.answer && !endpoint.name.empty()) << endpoint.path;
        if (endpoint.path == "*") continue;
        EXPECT_EQ(gate().find(endpoint.path.ends_with('*') ? "/v1/models/*" : endpoint.path),
                  &endpoint);
        EXPECT_TRUE(endpoint.run == Endpoint::Run::at_once ||
                    endpoint.access == Endpoint::Access::with_key)
            << endpoint.path;
    }
}

TEST(SameKey, IsEquality) {
    EXPECT_TRUE(same_key("abc", "abc"));
    EXPECT_FALSE(same_key("abcabc", "abc"));
    EXPECT_FALSE(same_key("", "abc"));
    EXPECT_FALSE(same_key("abd", "abc"));
}

}  // namespace
}  // namespace aerie
