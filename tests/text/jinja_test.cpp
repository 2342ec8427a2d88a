// Chat templates against what transformers' own function renders, and expressions against jinja2.
#include "text/jinja.h"

#include "text/jinja_data.h"

namespace aerie {
namespace {

using test::error_of;
using test::jinja_golden;
using test::render_jinja;

// What happened: the text, or the message of raise_exception, or an error.
struct Outcome {
    std::string text, raised, error;
};

Outcome outcome_of(const jinja::Template& chat, const jinja::Variable::Object& variables) {
    Outcome outcome;
    outcome.error = error_of([&] {
        try {
            const jinja::Rendered rendered = chat.render(variables, test::jinja_now());
            outcome.text = rendered.text;
            size_t covered = 0;
            for (const jinja::Run& run : rendered.runs) covered += run.bytes;
            EXPECT_EQ(covered, rendered.text.size());
        } catch (const jinja::Refusal& refusal) {
            outcome.raised = refusal.message();
            throw;
        }
    });
    return outcome;
}

void check_case(const jinja::Template& chat, const Json& expected) {
    const Json& conversation =
        *jinja_golden().find("conversations")->find(*expected.find("conversation")->string());
    const Outcome outcome = outcome_of(
        chat,
        test::jinja_variables(conversation, *expected.find("add_generation_prompt")->boolean()));
    if (const Json* text = expected.find("text")) {
        EXPECT_EQ(outcome.text, *text->string());
        EXPECT_EQ(outcome.error, "");
    } else if (const Json* raised = expected.find("raised")) {
        EXPECT_EQ(outcome.raised, *raised->string());
        EXPECT_NE(outcome.error.find(*raised->string()), std::string::npos) << outcome.error;
    } else {
        EXPECT_NE(outcome.error, "");
        EXPECT_EQ(outcome.raised, "");
    }
}

TEST(Jinja, GoldenTemplates) {
    size_t texts = 0, raised = 0, failed = 0;
    for (const auto& [name, golden] : *jinja_golden().find("templates")->object()) {
        const std::string file = name + ".jinja";
        const jinja::Template chat = jinja::Template::parse(test::jinja_file(file), file);
        for (const Json& expected : *golden.find("renders")->array()) {
            SCOPED_TRACE(file + ", " + *expected.find("conversation")->string());
            check_case(chat, expected);
            (expected.find("text") ? texts : expected.find("raised") ? raised : failed) += 1;
        }
    }
    EXPECT_EQ(texts, 320u);
    EXPECT_EQ(raised, 30u);
    EXPECT_EQ(failed, 14u);
}

TEST(Jinja, ExpressionsAsJinja2) {
    const Json golden = Json::parse(test::jinja_file("expressions.json"), "expressions.json");
    size_t count = 0;
    for (const Json& expected : *golden.find("cases")->array()) {
        const std::string& text = *expected.find("template")->string();
        SCOPED_TRACE(text);
        std::string rendered;
        const std::string error =
            error_of([&] { rendered = render_jinja(text, *golden.find("data")).text; });
        if (const Json* known = expected.find("text")) {
            EXPECT_EQ(rendered, *known->string());
            EXPECT_EQ(error, "");
        } else {
            EXPECT_NE(error, "") << *expected.find("fails")->string() << " there, here "
                                 << rendered;
        }
        ++count;
    }
    EXPECT_GT(count, 500u);
}

TEST(Jinja, RendersAgainAndAgain) {
    const auto chat = jinja::Template::parse("{% set n = namespace(x=x) %}{{ n.x }}{{ y }}", "t");
    for (int i = 0; i < 3; ++i) {
        const jinja::Variable::Object variables = {{"x", jinja::Variable(Json(i), 1)}};
        EXPECT_EQ(chat.render(variables, test::jinja_now()).text, std::to_string(i));
    }
}

TEST(Jinja, ErrorsNameFileAndLine) {
    const auto problem = [](const std::string& text) {
        return error_of([&] { render_jinja(text); });
    };
    EXPECT_EQ(problem("a\n\n{{ 1 + }}"), "t:3: the tag ends too early");
    EXPECT_EQ(problem("a\n{% if x %}\nb"), "t:3: no tag 'endif' before the end");
    EXPECT_EQ(problem("{% nosuch %}"), "t:1: unknown tag 'nosuch'");
    EXPECT_EQ(problem("{% endfor %}"), "t:1: unknown tag 'endfor'");
    EXPECT_EQ(problem("{{ 'abc }}"), "t:1: string that does not end");
    EXPECT_EQ(problem("\n{# abc"), "t:2: comment that does not end");
    EXPECT_EQ(problem("\n{% raw %}"), "t:2: raw block that does not end");
    EXPECT_EQ(problem("\n{{ a"), "t:2: tag that does not end");
    EXPECT_EQ(problem("{{ a $ }}"), "t:1: unexpected character '$'");
    EXPECT_EQ(problem("{{ a ] }}"), "t:1: unexpected ']'");
    EXPECT_EQ(problem("{{ 99999999999999999999 }}"), "t:1: number of more than 64 bits");
    EXPECT_EQ(problem("a\n{{ b.c }}"), "t:2: 'b' is undefined");
    EXPECT_EQ(problem("\n\n{{ 1 | nosuch }}"), "t:3: unknown filter 'nosuch'");
    EXPECT_EQ(problem("{{ 'x' + 1 }}"), "t:1: cannot compute str + int");
    EXPECT_EQ(problem("\n{{ raise_exception('a\nb') }}"), "t:2: a?b");
    EXPECT_EQ(problem("\xFF"), "t: template that is no UTF-8");
    EXPECT_EQ(problem(std::string((1 << 20) + 1, 'x')), "t: template of more than 1 MB");
}

TEST(Jinja, DataThatIsNoUtf8IsRepaired) {
    const Json data(Json::Object{{"x", Json("a\xFF"
                                            "b")}});
    EXPECT_EQ(render_jinja("{{ x }}{{ x | length }}", data).text,
              "a\xEF\xBF\xBD"
              "b3");
}

}  // namespace
}  // namespace aerie
