// Values that are given when the server starts must be values that clients can send.
#include "serve/requests/names.h"

#include <gtest/gtest.h>

namespace aerie {
namespace {

TEST(Key, IsVisibleAscii) {
    for (const char* key : {"k", "sk-0123_AZ.az~+/==", "!\"#$%&'()*,:;<>?@[\\]^`{|}"})
        EXPECT_EQ(fault_of_key(key), "") << key;
    EXPECT_NE(fault_of_key(""), "");
    for (const char* key : {" ", "abc ", " abc", "a b", "abc\n", "abc\r\n", "\tabc",
                            "a\x01"
                            "bc",
                            "abc\x7F", "sch\xC3\xBCssel", "\xFF"}) {
        const std::string fault = fault_of_key(key);
        EXPECT_NE(fault, "");
        EXPECT_EQ(fault.find("abc"), fault.npos) << "the key is not shown";
    }
    EXPECT_NE(fault_of_key(std::string_view("a\0b", 3)), "");
}

TEST(HostName, IsOneThatClientsSay) {
    for (const char* host : {"chat.example.com", "Chat.Example.com:8443", "localhost:1", "a_b-c",
                             "10.0.0.1:8080", "[::1]", "[FE80::a]:65535", "example.com."})
        EXPECT_EQ(fault_of_host(host), "") << host;
    for (const char* host : {"",
                             " ",
                             "*",
                             "*.example.com",
                             ".example.com",
                             "a..b",
                             "http://a",
                             "a/",
                             "a/b",
                             "a b",
                             "a,b",
                             "a:",
                             "a:0",
                             "a:080",
                             "a:65536",
                             "a:b",
                             "a:1:2",
                             "::1",
                             "[::1",
                             "[]",
                             "[::1]x",
                             "[::1]:",
                             "user@a",
                             "a\n",
                             "b\xC3\xBC"
                             "cher.example",
                             "a?b",
                             "%61"})
        EXPECT_NE(fault_of_host(host), "") << host;
}

TEST(OriginName, IsOneThatBrowsersSend) {
    for (const char* origin :
         {"https://chat.example.com", "http://localhost:3000", "http://10.0.0.1",
          "http://[::1]:8080", "https://a:80", "http://a:443",
          "chrome-extension://abcdefghijklmnop", "tauri://localhost", "app://Obsidian.md"}) {
        EXPECT_EQ(fault_of_origin(origin), "") << origin;
    }
    for (const char* origin : {"",
                               " ",
                               "null",
                               "NULL",
                               "*",
                               "http://",
                               "http://*",
                               "https://*.example.com",
                               "chat.example.com",
                               "//a",
                               "http:a",
                               "http:/a",
                               "file://",
                               "http://user@a",
                               "http://a b",
                               "http://a,http://b",
                               "http://a:0",
                               "http://a:x",
                               "http://a:99999",
                               "http://[::1",
                               "https://b\xC3\xBC"
                               "cher.example",
                               "http://a\n",
                               "http://a http://b",
                               "1+:x"})
        EXPECT_NE(fault_of_origin(origin), "") << origin;
}

TEST(OriginName, SaysWhatBrowsersSend) {
    const auto hint = [](const char* origin) {
        const std::string fault = fault_of_origin(origin);
        const std::string before = "such as ";
        const size_t at = fault.find(before) + before.size();
        return fault.substr(at, fault.find(", not") - at);
    };
    EXPECT_EQ(hint("http://x/"), "http://x");
    EXPECT_EQ(hint("HTTPS://Chat.Example.com"), "https://chat.example.com");
    EXPECT_EQ(hint("https://a:443"), "https://a");
    EXPECT_EQ(hint("http://a:80/page?x#y"), "http://a");
    EXPECT_EQ(hint("http://A:8080/"), "http://a:8080");
    EXPECT_EQ(hint("null"), "https://chat.example.com");
}

TEST(ModelName, CanBeAskedFor) {
    for (const char* name : {"a", "org/name", "a b", "Modell-\xC3\xBC", "?%#", "."})
        EXPECT_EQ(fault_of_model_name(name), "") << name;
    for (const char* name : {"", " ", "\xFF", "a\xC3", "a\nb", "\x1B[1m", "a\x7F", "\xC2\x9B"})
        EXPECT_NE(fault_of_model_name(name), "");
}

}  // namespace
}  // namespace aerie
