// Values of Variant are copied while memory runs out: there is an exception, whichever request for
// memory is refused, and nothing is destroyed that was never constructed.
#include <gtest/gtest.h>

#include <new>

#include "host_memory.h"
#include "io/json.h"
#include "jinja/jinja.h"
#include "serve/requests/request.h"

namespace aerie::test {
namespace {

const char* const kText = "a text that is long enough for the heap";

TEST(VariantMemory, JsonIsBuiltOfLists) {
    const size_t refused = refuse_each([] {
        const Json json =
            Json::Object{{"content", Json::Array{kText, kText, Json(), 1.5}}, {"token", kText}};
        EXPECT_EQ(json.find("content")->array()->size(), 4u);
    });
    EXPECT_GT(refused, 10u);
}

TEST(VariantMemory, JsonIsCopiedAndAssigned) {
    const Json all = Json::Object{
        {"object", Json::Object{{"a key that is long enough for the heap", Json::Array{kText, 2}}}},
        {"text", kText}};
    EXPECT_GT(refuse_each([&] { EXPECT_EQ(Json(all).dump(), all.dump()); }), 5u);
    for (const Json& before : {Json(), Json(7), Json(kText), Json(Json::Array{1, kText}), all}) {
        for (const Json& after : {Json(), Json(0.5), Json(kText), Json(Json::Array{kText}), all})
            refuse_each([&] {
                Json value = before;
                try {
                    value = after;
                } catch (const std::bad_alloc&) {
                    EXPECT_EQ(value.dump(), before.dump()) << "all or nothing";
                    throw;
                }
                EXPECT_EQ(value.dump(), after.dump());
            });
    }
}

TEST(VariantMemory, JsonIsReadAndWritten) {
    const std::string text =
        R"({"messages":[{"role":"a role that is long enough for the heap","content":"x"}],"n":[[1],[2.5]]})";
    EXPECT_GT(refuse_each([&] { EXPECT_EQ(Json::parse(text, "text").dump(), text); }), 10u);
}

TEST(VariantMemory, VariablesOfTemplates) {
    using jinja::Variable;
    const Variable all(Variable::Object{{"list", Variable(Variable::List{Variable(kText, 1)}, 2)},
                                        {"json", Variable(Json(Json::Array{kText}), 3)}},
                       4);
    const size_t refused = refuse_each([&] {
        Variable copy = all, other(Json(), 0);
        other = copy;
        EXPECT_EQ(std::get<Variable::Object>(other.value()).size(), 2u);
    });
    EXPECT_GT(refused, 5u);
}

TEST(VariantMemory, RequestsAreCopied) {
    for (const char* prompt : {R"("a prompt that is long enough for the heap")", "[1, 2, 3]"}) {
        const CompletionRequest request =
            parse_completion_request(std::string(R"({"prompt":)") + prompt + "}");
        const size_t refused = refuse_each([&] {
            CompletionRequest copy = request, other;
            other = copy;
            EXPECT_EQ(other.prompts.at(0).index(), request.prompts.at(0).index());
        });
        EXPECT_GE(refused, 2u);
    }
}

}  // namespace
}  // namespace aerie::test
