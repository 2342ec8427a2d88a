// JSON: what is accepted, what is refused, and that writing and reading agree.
#include "io/json.h"

#include <cmath>
#include <limits>

#include "io/damage.h"

namespace aerie {
namespace {

using test::error_of;

Json parse(std::string_view text) {
    return Json::parse(text, "test.json");
}
std::string problem(std::string_view text) {
    return error_of([&] { parse(text); });
}

TEST(Json, ReadsEveryKindOfValue) {
    const Json json = parse(R"({"n":null,"t":true,"i":-7,"d":2.5,"s":"x\u00e9","a":[1,2],"o":{}})");
    EXPECT_TRUE(json.find("n")->is_null());
    EXPECT_TRUE(*json.find("t")->boolean());
    EXPECT_EQ(json.find("i")->number(), -7);
    EXPECT_EQ(json.find("d")->number(), 2.5);
    EXPECT_EQ(*json.find("s")->string(), "x\xC3\xA9");
    EXPECT_EQ(json.find("a")->array()->size(), 2u);
    EXPECT_TRUE(json.find("o")->object()->empty());
    EXPECT_EQ(json.find("absent"), nullptr);
    EXPECT_EQ(json.find("a")->find("x"), nullptr);
    EXPECT_EQ(json.find("i")->string(), nullptr);
}

TEST(Json, KeepsFileOrder) {
    const Json json = parse(R"({"z":1,"a":2,"m":3})");
    std::string keys;
    for (const auto& [key, value] : *json.object()) keys += key;
    EXPECT_EQ(keys, "zam");
}

TEST(Json, IntegersAreWholeNumbersThatFit) {
    const auto integer = [](std::string_view text) -> std::string {
        int64_t value = 0;
        return parse(text).integer(value) ? std::to_string(value) : "none";
    };
    EXPECT_EQ(integer("9223372036854775807"), "9223372036854775807");
    EXPECT_EQ(integer("-9223372036854775808"), "-9223372036854775808");
    EXPECT_EQ(integer("1e4"), "10000");
    EXPECT_EQ(integer("2048.0"), "2048");
    EXPECT_EQ(integer("9223372036854775808"), "none");
    EXPECT_EQ(integer("1e300"), "none");
    EXPECT_EQ(integer("0.5"), "none");
    EXPECT_EQ(integer("\"1\""), "none");
    EXPECT_EQ(integer("true"), "none");
}

TEST(Json, RefusesWhatIsNotStrictJson) {
    for (const char* text :
         {"", " ", "{", "[1,]", "{\"a\":1,}", "{'a':1}", "NaN", "[Infinity]", "-Infinity", "01",
          "+1", "1 2", "{} x", "// c\n1", "\"\xFF\"", "\"\\ud800\"", "\"a\nb\"", "tru", "[1 2]"}) {
        EXPECT_TRUE(problem(text).starts_with("test.json: not JSON at byte ")) << text;
    }
    EXPECT_EQ(problem("1e999"), "test.json: a number is out of range at byte 5");
    EXPECT_EQ(problem("[0,-1e999]"), "test.json: a number is out of range at byte 9");
}

TEST(Json, RefusesDuplicateKeys) {
    EXPECT_EQ(problem(R"({"a":1,"b":{"a":2},"a":3})"), "test.json: duplicate key 'a'");
    EXPECT_EQ(problem(R"([{"a":1},{"a":1}])"), "");
    EXPECT_EQ(problem("{\"\\n\":1,\"\\n\":1}"), "test.json: duplicate key '?'");
}

TEST(Json, RefusesDeepNesting) {
    const auto nested = [](size_t depth) {
        return std::string(depth, '[') + std::string(depth, ']');
    };
    EXPECT_EQ(problem(nested(64)), "");
    EXPECT_EQ(problem(nested(65)), "test.json: nested deeper than 64");
    EXPECT_EQ(problem(std::string(10'000'000, '[')), "test.json: nested deeper than 64");
    std::string objects;
    for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
    EXPECT_EQ(problem(objects), "test.json: nested deeper than 64");
}

TEST(Json, RefusesStringsOfMoreThan16MB) {
    const std::string most(16 << 20, 'x'), over = "test.json: string of more than 16 MB at byte ";
    EXPECT_EQ(problem("\"" + most + "\""), "");
    EXPECT_EQ(problem("[\"" + most + "x\"]"), over + "2");
    EXPECT_EQ(problem("[\"" + most + "x"), over + "2");
    EXPECT_EQ(problem("{\"a\":0,\"" + most + "x\":1}"), over + "8");
    // A quote after one backslash ends no string; a quote after two backslashes does.
    std::string quotes, strings = "\"\"";
    for (size_t i = 0; i < most.size() / 8; ++i) {
        quotes += "\\\\\\\"xxxx";
        strings += ",\"x\\\\\"";
    }
    EXPECT_EQ(problem("[\"" + quotes + "\"]"), "");
    EXPECT_EQ(problem("[\"x" + quotes + "\"]"), over + "2");
    EXPECT_EQ(problem("[" + strings + "]"), "test.json: more than 1000000 values");
}

TEST(Json, RefusesNumbersOfMoreThan16MB) {
    const std::string most(16 << 20, '1'), over = "test.json: value of more than 16 MB at byte ";
    EXPECT_EQ(problem("[" + most + "1]"), over + "2");
    EXPECT_EQ(problem("{\"a\":\"" + most + "\",\"b\":-" + most + "}"), over + "16777229");
    EXPECT_EQ(problem(most + "1"), over + "1");
    std::string several = "[";
    for (size_t i = 0; i < most.size() / 16; ++i) several += "1234567890,\r\n1 ,";
    EXPECT_EQ(problem(several + "1]"), "test.json: more than 1000000 values");
    EXPECT_EQ(problem(several + most + "]"), "test.json: more than 1000000 values");
}

TEST(Json, RefusesMillionsOfValues) {
    std::string text = "[0";
    for (int i = 0; i < 1'000'000; ++i) text += ",0";
    EXPECT_EQ(problem(text + "]"), "test.json: more than 1000000 values");
}

TEST(Json, WritesWhatItReads) {
    for (const std::string text :
         {"null", "true", "[]", "{}", "[1,2.5,\"x\"]", R"({"a":[{"b":null}],"c":"\"\\\n"})",
          "18446744073709551615", "-9223372036854775808", "0.1", "1e-320", "-0.0", "3.0"}) {
        EXPECT_EQ(parse(text).dump(), text);
    }
}

TEST(Json, WritesDoublesThatReadBackTheSame) {
    for (const double value : {0.1, 1.0 / 3, 1e308, 5e-324, 6.02214076e23, -2.5}) {
        EXPECT_EQ(parse(Json(value).dump()).number(), value);
    }
    EXPECT_EQ(Json(std::nan("")).dump(), "null");
    EXPECT_EQ(Json(std::numeric_limits<double>::infinity()).dump(), "null");
}

TEST(Json, WritesOnlyUtf8) {
    EXPECT_EQ(Json("a\xFF\xE2\x82").dump(), "\"a\xEF\xBF\xBD\xEF\xBF\xBD\"");
    EXPECT_EQ(Json(std::string("\0\x1F\x7F", 3)).dump(), "\"\\u0000\\u001f\\u007f\"");
}

TEST(Json, SetAppendsToAnObjectMadeFromNull) {
    Json json;
    json.set("a", 1);
    json.set("b", Json::Array{true, "x"});
    EXPECT_EQ(json.dump(), R"({"a":1,"b":[true,"x"]})");
}

TEST(Json, SurvivesDamage) {
    test::expect_survives_damage(
        R"({"a":[1,-2.5e3,true,null],"b":{"c":"\u20ac\ud83d\ude00"},"d":18446744073709551615})",
        parse);
}

TEST(Json, WritesWhatATerminalWouldObeyAsEscapes) {
    const std::string text = "\x1B\x7F\xC2\x9B\xE2\x80\xAE\xE2\x81\xA6\xC3\xA4";
    EXPECT_EQ(Json(text).dump(), "\"\\u001b\\u007f\\u009b\\u202e\\u2066\xC3\xA4\"");
    EXPECT_EQ(*Json::parse(Json(text).dump(), "json").string(), text);
}

TEST(Json, SkipsAByteOrderMarkAtTheStart) {
    const std::string mark = "\xEF\xBB\xBF";
    EXPECT_EQ(Json::parse(mark + "{\"a\":1}", "a.json").dump(), "{\"a\":1}");
    EXPECT_EQ(*Json::parse("\"" + mark + "\"", "a.json").string(), mark) << "it is a character";
    for (const std::string& text : {mark, mark + mark + "{}", "{}" + mark, std::string("\xEF{}")})
        EXPECT_NE(error_of([&] { Json::parse(text, "a.json"); }).find("not JSON at byte"),
                  std::string::npos);
}

TEST(Json, RefusesWhatHidesBehindANul) {
    const std::string good = "{\"a\":1}";
    for (const std::string& text :
         {good + std::string(1, '\0'), good + std::string("\0garbage", 8),
          std::string(1, '\0') + good, std::string("{\"a\":\"x\0y\"}", 11)})
        EXPECT_NE(error_of([&] { Json::parse(text, "a.json"); }).find("not JSON at byte"),
                  std::string::npos);
}

TEST(Json, TakesALimitOnItsValues) {
    EXPECT_EQ(error_of([] { Json::parse("[1,2,3]", "a", 4); }), "");
    EXPECT_EQ(error_of([] { Json::parse("[1,2,3]", "a", 3); }), "a: more than 3 values");
}

// Writes down the events that it is given.
class Noted : public JsonPart {
  public:
    Noted(std::string outer, std::string inner) : JsonPart(std::move(outer), std::move(inner)) {}

    void open(bool is_array) override { all += is_array ? "[" : "{"; }
    void close() override { all += "!"; }
    void key(std::string_view name) override { all += std::string(name) + ":"; }
    void string(std::string_view value) override { all += "'" + std::string(value) + "' "; }
    void integer(int64_t value) override { all += std::to_string(value) + " "; }
    void other() override { all += "? "; }

    std::string all;
};

TEST(JsonPart, IsHandedWhatItNames) {
    Noted lists("m", "lists"), more("m", "more");
    JsonPart* const parts[] = {&lists, &more};
    const Json json = Json::parse(R"({"lists":[1],"m":{"a":2,"lists":{"x":[1,"s",null,2.5,
        18446744073709551615,{"lists":-3}],"x":true},"b":{"lists":4},"more":5},"n":{"more":6}})",
                                  "f", parts);
    EXPECT_EQ(lists.all, "{x:[1 's' ? ? ? {lists:-3 !!x:? !");
    EXPECT_EQ(more.all, "5 ");
    EXPECT_EQ(json.dump(), R"({"lists":[1],"m":{"a":2,"lists":null,"b":{"lists":4},"more":null},)"
                           R"("n":{"more":6}})")
        << "only members of that member are handed over";
}

TEST(JsonPart, ItsErrorsNameTheFile) {
    const auto problem = [](std::string_view text) {
        JsonPart plain("m", "x");
        JsonPart* const parts[] = {&plain};
        return error_of([&] { Json::parse(text, "f.json", parts); });
    };
    for (const char* value : {"1", "-1", "1.5", "true", "null", "\"s\"", "[]", "{}", "[[1]]"}) {
        EXPECT_EQ(problem(std::string(R"({"m":{"x":)") + value + "}}"),
                  "f.json: x of m: a value of another kind was expected")
            << value;
        EXPECT_EQ(problem(std::string(R"({"m":{"y":)") + value + "}}"), "") << value;
    }
    EXPECT_EQ(problem(R"({"m":[{"x":1}]})"), "");
    EXPECT_EQ(problem(R"([{"m":{"x":1}}])"), "");
}

// The document's own checks hold in a part, too.
TEST(JsonPart, IsReadAsStrictly) {
    const auto problem = [](const std::string& value) {
        Noted part("m", "x");
        JsonPart* const parts[] = {&part};
        return error_of([&] { Json::parse(R"({"m":{"x":)" + value + "}}", "f", parts); });
    };
    EXPECT_EQ(problem("[1,2"), "f: not JSON at byte 15");
    EXPECT_EQ(problem("1,\"x\":2"), "f: duplicate key 'x'");
    EXPECT_EQ(problem(std::string(62, '[') + std::string(62, ']')), "");
    EXPECT_EQ(problem(std::string(63, '[') + std::string(63, ']')), "f: nested deeper than 64");
    std::string many = "[0";
    for (int i = 0; i < 1'000'000; ++i) many += ",0";
    EXPECT_EQ(problem(many + "]"), "") << "they are no values of the document";
}

}  // namespace
}  // namespace aerie
