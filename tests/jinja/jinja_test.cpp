// Chat templates against the results of transformers' own function, and expressions against jinja2.
#include "jinja/jinja.h"

#include "jinja/jinja_data.h"

namespace aerie {
namespace {

using test::error_of;
using test::jinja_golden;
using test::render_jinja;

// The outcome of rendering: the text, or the message of raise_exception, or an error.
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
        } catch (const jinja::Failure&) {
            throw;
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

// Compares the templates of a file with jinja2's results; returns their number.
size_t check_templates(const std::string& file) {
    const Json golden = Json::parse(test::jinja_file(file), file);
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
    return count;
}

TEST(Jinja, ExpressionsAsJinja2) {
    EXPECT_GT(check_templates("expressions.json"), 500u);
}

TEST(Jinja, LanguageAsJinja2) {
    EXPECT_GT(check_templates("language.json"), 1500u);
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
    EXPECT_EQ(problem("\n{{ '\\N{BULLET}' }}"),
              "t:2: character by its name in a string: write its number, \\uXXXX or \\UXXXXXXXX");
    EXPECT_EQ(problem("{% call 5 %}{% endcall %}"), "t:1: a call block needs a call");
    EXPECT_EQ(problem("{% macro m(caller) %}{{ caller() }}{% endmacro %}"),
              "t:1: parameter 'caller' without a default");
    EXPECT_EQ(problem("{% for x in [1] %}{{ loop([1]) }}{% endfor %}"),
              "t:1: a loop that is not marked 'recursive' cannot be called");
    EXPECT_EQ(problem("{{ dict(**{1: 2}) }}"), "t:1: ** of a dict whose keys are no strings");
    EXPECT_EQ(problem("a\n{{ b.c }}"), "t:2: 'b' is undefined");
    EXPECT_EQ(problem("\n\n{{ 1 | nosuch }}"), "t:3: unknown filter 'nosuch'");
    EXPECT_EQ(problem("{{ 'x' + 1 }}"), "t:1: cannot compute str + int");
    EXPECT_EQ(problem("\n{{ raise_exception('a\nb') }}"), "t:2: a?b");
    EXPECT_EQ(problem("\xFF"), "t: template that is no UTF-8");
    EXPECT_EQ(problem(std::string((1 << 20) + 1, 'x')), "t: template of more than 1 MB");
}

// A template with an unknown name is refused before it runs, wherever the name stands, except where
// a condition may guard it.
TEST(Jinja, UnknownNamesDoNotParse) {
    const auto problem = [](const std::string& text) {
        return error_of([&] { jinja::Template::parse(text, "t"); });
    };
    for (const char* text : {"\n{{ x|nosuch }}", "a\n{% for i in [] %}{{ i|nosuch }}{% endfor %}",
                             "\n{% macro m() %}{{ [1|nosuch] }}{% endmacro %}",
                             "\n{% if 0 %}{% for i in [] %}{{ i|nosuch }}{% endfor %}{% endif %}",
                             "\n{{ x|replace('a', 1|nosuch) }}", "\n{% set a = 1|nosuch %}",
                             "\n{% filter nosuch %}{% endfilter %}"}) {
        EXPECT_EQ(problem(text), "t:2: unknown filter 'nosuch'") << text;
    }
    EXPECT_EQ(problem("{{ x is nosuch }}"), "t:1: unknown test 'nosuch'");
    for (const char* text : {"{% if x %}{{ x|nosuch }}{% endif %}", "{{ x|nosuch if x else 1 }}",
                             "{% if x is nosuch %}{% endif %}", "{{ x|map('nosuch') }}",
                             "{% if x %}{% elif x|nosuch %}{% endif %}"}) {
        EXPECT_EQ(problem(text), "") << text;
    }
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
