// Every bound of the template language gives an error of one line, soon, and templates that are
// damaged in any way end in a text or an error.
#include <random>

#include "jinja/jinja.h"
#include "jinja/jinja_data.h"
#include "rounds.h"

namespace aerie {
namespace {

using test::error_of;
using test::render_jinja;

std::string repeated(const std::string& text, size_t times) {
    std::string all;
    for (size_t i = 0; i < times; ++i) all += text;
    return all;
}

std::string problem(const std::string& text, const Json& variables = {}) {
    return error_of([&] { render_jinja(text, variables); });
}

TEST(JinjaLimits, NestingOfTheText) {
    const auto nested = [](const std::string& open, const std::string& inside,
                           const std::string& close, size_t depth) {
        return repeated(open, depth) + inside + repeated(close, depth);
    };
    const struct {
        std::string before, open, inside, close, after;
    } cases[] = {
        {"{{ ", "(", "1", ")", " }}"},
        {"{{ ", "[", "1", "]", " }}"},
        {"{{ ", "{1:", "1", "}", " }}"},
        {"{{ ", "- ", "1", "", " }}"},
        {"{{ ", "not ", "1", "", " }}"},
        {"{{ ", "a[", "1", "]", " }}"},
        {"{{ ", "dict(a=", "1", ")", " }}"},
        {"{{ ", "1|default(", "1", ")", " }}"},
        {"{{ ", "1 if 0 else ", "1", "", " }}"},
        {"{{ ", "1 is eq(", "1", ")", " }}"},
        {"{% for ", "(", "a", ",)", " in [] %}{% endfor %}"},
        {"", "{% if 1 %}", "", "{% endif %}", ""},
        {"", "{% for x in [1] %}", "", "{% endfor %}", ""},
        {"", "{% macro m() %}", "", "{% endmacro %}", ""},
        {"", "{% with %}", "", "{% endwith %}", ""},
        {"", "{% filter upper %}", "", "{% endfilter %}", ""},
        {"", "{% set x %}", "", "{% endset %}", ""},
        {"", "{% generation %}", "", "{% endgeneration %}", ""},
    };
    for (const auto& one : cases) {
        SCOPED_TRACE(one.open);
        const auto text = [&](size_t depth) {
            return one.before + nested(one.open, one.inside, one.close, depth) + one.after;
        };
        EXPECT_EQ(problem(text(25)).find("nested deeper"), std::string::npos);
        for (const size_t depth : {100, 5'000}) {
            EXPECT_EQ(problem(text(depth)), "t:1: nested deeper than 64");
        }
    }
}

// Operations beside each other are no nesting.
TEST(JinjaLimits, LongChainsAreFlat) {
    EXPECT_EQ(render_jinja("{{ 1" + repeated(" + 1", 5000) + " }}").text, "5001");
    EXPECT_EQ(render_jinja("{{ 'a'" + repeated(" ~ 'a'", 5000) + " }}").text.size(), 5001u);
    EXPECT_EQ(render_jinja("{{ 1" + repeated("|abs", 5000) + " }}").text, "1");
    EXPECT_EQ(render_jinja("{{ 0" + repeated(" or 0", 5000) + " }}").text, "0");
    EXPECT_EQ(render_jinja("{{ 1" + repeated(" <= 1", 5000) + " }}").text, "True");
    EXPECT_EQ(render_jinja("{% if 0 %}" + repeated("{% elif 0 %}", 5000) + "{% endif %}").text, "");
    EXPECT_EQ(problem(repeated("{{ 1 }}", 40'000)), "t:1: more than 100000 tokens");
}

TEST(JinjaLimits, CallsOfMacros) {
    const std::string recursive = "{% macro m(n) %}{{ m(n + 1) }}{% endmacro %}{{ m(0) }}";
    EXPECT_EQ(problem(recursive), "t:1: macros or loops that call each other deeper than 64");
    EXPECT_EQ(problem("{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}"
                      "{% endmacro %}{{ a() }}"),
              "t:1: macros or loops that call each other deeper than 64");
    EXPECT_EQ(problem("{% macro m(a=m()) %}{% endmacro %}{{ m() }}"),
              "t:1: macros or loops that call each other deeper than 64");
    EXPECT_EQ(problem("{% macro m() %}" + repeated("{% if 1 %}", 20) + "{{ [[[[[[m()]]]]]] }}" +
                      repeated("{% endif %}", 20) + "{% endmacro %}{{ m() }}"),
              "t:1: calls nested too deeply");
    // Two calls inside each call: the limit of steps ends it.
    EXPECT_NE(problem("{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}"
                      "{% endmacro %}{{ m(30) }}")
                  .find("more than 1000000 steps"),
              std::string::npos);
}

TEST(JinjaLimits, StepsAndMemory) {
    const std::string kSteps = "t:1: takes more than 1000000 steps",
                      kLong = "t:1: text of more than 4 MB",
                      kItems = "t:1: list of more than 200000 items";
    const std::string loops = "{% for a in range(99999) %}{% for b in range(99999) %}";
    const std::string ends = "{% endfor %}{% endfor %}";
    const std::string grow =
        "{% set n = namespace(x='ab', l=[1], m=[1]) %}{% for a in range(99999) %}";
    const struct {
        std::string text, error;
    } cases[] = {
        {loops + ends, kSteps},
        {loops + "{{ a }}" + ends, kSteps},
        {loops + "{% continue %}" + ends, kSteps},
        {"{{ range(99999999) }}", "t:1: range: more than 100000 numbers"},
        {"{{ range(0, -9223372036854775807, -1) }}", "t:1: range: more than 100000 numbers"},
        {grow + "{% set n.x = n.x + n.x %}{% endfor %}", kLong},
        {grow + "{% set n.x = n.x ~ n.x %}{% endfor %}", kLong},
        {grow + "{% set n.x = n.x|replace('a', n.x) %}{% endfor %}", kLong},
        {grow + "{% set n.x = n.x.join([n.x, n.x]) %}{% endfor %}", kLong},
        {grow + "{% set n.x = '%s%s' % (n.x, n.x) %}{% endfor %}", kLong},
        {grow + "{% set n.x %}{{ n.x }}{{ n.x }}{% endset %}{% endfor %}", kLong},
        {grow + "{% set n.x = n.x|tojson|tojson %}{% endfor %}", kSteps},
        {grow + "{% set n.l = n.l + n.l %}{% endfor %}", kItems},
        {grow + "{% set n.l = [n.l] %}{% endfor %}", "t:1: lists nested deeper than 64"},
        {grow + "{% set n.l = {'a': n.l} %}{% endfor %}", "t:1: lists nested deeper than 64"},
        {grow + "{% set n.l = [n.l, n.l] %}{% if a > 50 %}{{ n.l }}{% endif %}{% endfor %}",
         kSteps},
        {grow + "{% set n.l = [n.l, n.l] %}{% if a > 50 %}{{ n.l|tojson }}{% endif %}{% endfor %}",
         kLong},
        {grow + "{% set n.l = [n.l, n.l] %}{% set n.m = [n.m, n.m] %}"
                "{% if a > 50 %}{{ n.l == n.m }}{% endif %}{% endfor %}",
         kSteps},
        {"{{ 'a' * 99999999999 }}", kLong},
        {"{{ [1] * 99999999999 }}", kItems},
        {"{{ 'a' | center(99999999999) }}", kLong},
        {"{{ 'a'.ljust(99999999999) }}", kLong},
        {"{{ 'a'.zfill(99999999999) }}", kLong},
        {"{{ 'a' | indent(99999999999, true) }}", kLong},
        {"{{ [1] | tojson(indent=99999999999) }}", kLong},
        {"{{ '%99999999d' % 1 }}", "t:1: format wider than 4096"},
        {"{{ '{:99999999}'.format(1) }}", "t:1: format wider than 4096"},
        {"{{ [1] | batch(99999999999, 1) }}", kItems},
        {"{{ 2 ** 99999999999 }}", "t:1: number of more than 64 bits"},
        {"{{ 9223372036854775807 + 1 }}", "t:1: number of more than 64 bits"},
        {"{{ -9223372036854775807 - 2 }}", "t:1: number of more than 64 bits"},
        {"{{ (-9223372036854775807 - 1) // -1 }}", "t:1: number of more than 64 bits"},
        {"{{ -(-9223372036854775807 - 1) }}", "t:1: number of more than 64 bits"},
        {"{{ 1e300 | int }}", "t:1: int: number of more than 64 bits"},
        {"{% set x = 'a' * 4000000 %}{{ x }}{{ x }}", kLong},
        {"{% set x = 'a' * 4000000 %}{% for i in range(999) %}{% if x + 'b' in x %}{% endif %}{% "
         "endfor %}",
         "t:1: takes more than 32 MB"},
        {"{% set x = 'a' * 4000000 %}{{ (x[:2000000] ~ 'b') in x }}", ""},
        {"{% set x = 'a' * 4000000 %}{{ x.rsplit('b' ~ x[:2000000])|length }}", kSteps},
        {"{% set x = 'a' * 4000000 %}{{ x | list | length }}", kItems},
        {"{% set x = 'a' * 4000000 %}{{ x.split('a') | length }}", kItems},
        {"{% set x = ' ' * 4000000 %}{% for i in range(9999) %}{% set y = x.strip() %}{% endfor %}",
         kSteps},
        {"{% set x = 'a' * 4000000 %}{% for i in range(9999) %}{% set y = x[2] %}{% endfor %}",
         kSteps},
        {"{% set x = 'a' * 4000000 %}{% for i in range(9999) %}{% set y = x|length %}{% endfor %}",
         kSteps},
        {"{{ range(99999)|list|unique|list|length }}", kSteps},
    };
    for (const auto& one : cases) {
        SCOPED_TRACE(one.text);
        EXPECT_EQ(problem(one.text), one.error);
    }
}

// A namespace that holds itself is freed (the leak checker looks), and can be printed.
TEST(JinjaLimits, Cycles) {
    EXPECT_EQ(
        render_jinja("{% set n = namespace() %}{% set n.n = n %}{% set n.l = [n] %}{{ n.n.n }}")
            .text,
        "<Namespace>");
    EXPECT_EQ(problem("{% set n = namespace() %}{% set n.n = n %}{{ n|tojson }}"),
              "t:1: tojson of Namespace");
    EXPECT_EQ(render_jinja("{% set n = namespace() %}{% for x in [1, 2] %}{% set n.l = loop %}"
                           "{% macro n_m() %}{{ x }}{% endmacro %}{% set n.m = n_m %}{% endfor %}"
                           "{{ n.l.index }}{{ n.l.cycle(1, 2) }}{{ n.m() }}")
                  .text,
              "222");
}

TEST(JinjaLimits, DeepVariables) {
    const Json deep = Json::parse("{\"x\":" + repeated("[", 62) + repeated("]", 62) + "}", "deep");
    EXPECT_EQ(problem("{{ x }}", deep), "");
    Json deeper;
    for (int i = 0; i < 100; ++i) deeper = Json(Json::Array{deeper});
    EXPECT_NE(problem("{{ x }}", Json(Json::Object{{"x", deeper}})), "");
}

Json text_of(size_t bytes) {
    return Json(Json::Object{{"x", Json(std::string(bytes, 'x'))}});
}

// A server answers each kind of failure in its own way.
TEST(JinjaLimits, FailuresTellTheirKind) {
    EXPECT_THROW(render_jinja("{{ raise_exception('a') }}"), jinja::Refusal);
    EXPECT_THROW(render_jinja("{{ none.a + 1 }}"), jinja::Failure);
    EXPECT_THROW(render_jinja("{% for a in range(99999) %}{{ range(999)|sum }}{% endfor %}"),
                 jinja::Failure);
    for (const char* text : {"{{ x }}", "a", "{{ x|length }}"}) {
        EXPECT_THROW(render_jinja(text, text_of((4 << 20) + 1)), jinja::TextTooLong) << text;
    }
    EXPECT_THROW(render_jinja("{{ x }}{{ x }}", text_of(3 << 20)), jinja::TextTooLong);
    const Json::Array many(200'000, Json(Json::Object{{"role", "user"}, {"content", ""}}));
    EXPECT_THROW(render_jinja("", Json(Json::Object{{"x", many}})), jinja::TextTooLong);
    EXPECT_EQ(problem("{{ x }}a", text_of(4 << 20)), "t:1: text of more than 4 MB");
    EXPECT_EQ(problem("{{ x }}", text_of(4 << 20)), "");
    try {
        render_jinja("{{ raise_exception('a') }}");
    } catch (const jinja::Failure&) {
        ADD_FAILURE() << "raise_exception is no failure of the template";
    } catch (const jinja::Refusal& refusal) {
        EXPECT_EQ(refusal.message(), "a");
    }
    EXPECT_THROW(jinja::Template::parse("{{ 1 + }}", "t"), Error);
}

// Conversations of 6 MB, in few messages and in many.
TEST(JinjaLimits, LongConversationsAreTooLong) {
    for (const size_t count : {1u, 2u, 7u, 60u, 2000u}) {
        Json::Array messages;
        for (size_t i = 0; i < count; ++i) {
            messages.push_back(
                Json(Json::Object{{"role", Json(i % 2 ? "assistant" : "user")},
                                  {"content", Json(std::string((6 << 20) / count, 'x'))}}));
        }
        const Json conversation(Json::Object{{"messages", Json(messages)}});
        for (const char* name : {"chatml", "headers31", "inst", "r1", "think3", "tools25"}) {
            SCOPED_TRACE(std::to_string(count) + " " + name);
            const std::string file = std::string(name) + ".jinja";
            const auto chat = jinja::Template::parse(test::jinja_file(file), file);
            const auto variables = test::jinja_variables(conversation, true);
            EXPECT_THROW(chat.render(variables, test::jinja_now()), jinja::TextTooLong);
        }
    }
}

// A template may quote its input: the message is short, and cut between characters.
TEST(JinjaLimits, MessagesAreShort) {
    const auto message_of = [](const std::string& text, const Json& variables) {
        try {
            render_jinja(text, variables);
        } catch (const jinja::Refusal& refusal) {
            EXPECT_EQ(std::string(refusal.what()), "t:1: " + refusal.message());
            return refusal.message();
        }
        return std::string("no refusal");
    };
    EXPECT_EQ(message_of("{{ raise_exception(x) }}", text_of(1 << 20)), std::string(1000, 'x'));
    EXPECT_EQ(message_of("{{ raise_exception(x) }}", text_of(1000)), std::string(1000, 'x'));
    EXPECT_EQ(message_of("{{ raise_exception('a' ~ '\u00e9' * 9999) }}", {}),
              "a" + repeated("\xC3\xA9", 499));
    EXPECT_EQ(message_of("{{ raise_exception('\U0001F642' * 9999) }}", {}),
              repeated("\xF0\x9F\x99\x82", 250));
    EXPECT_LE(message_of("{{ {}[x] + 1 }}", text_of(1 << 20)).size(), 1000u);
}

// A conversation of 2 MB passes through everything that templates do with it.
TEST(JinjaLimits, LongConversation) {
    Json::Array messages;
    for (int i = 0; i < 400; ++i) {
        messages.push_back(Json(Json::Object{{"role", Json(i % 2 ? "assistant" : "user")},
                                             {"content", Json(std::string(5000, 'x'))}}));
    }
    const Json conversation(Json::Object{{"messages", Json(messages)}});
    for (const char* name : {"chatml", "headers31", "inst", "r1", "think3", "tools25", "macros"}) {
        const std::string file = std::string(name) + ".jinja";
        const auto chat = jinja::Template::parse(test::jinja_file(file), file);
        EXPECT_GT(
            chat.render(test::jinja_variables(conversation, true), test::jinja_now()).text.size(),
            2'000'000u);
    }
}

const std::vector<std::string>& golden_names() {
    static const std::vector<std::string> names = [] {
        std::vector<std::string> made;
        for (const auto& member : *test::jinja_golden().find("templates")->object()) {
            made.push_back(member.first + ".jinja");
        }
        return made;
    }();
    return names;
}

// Renders the template with a conversation that has calls and tools.
void survive(const std::string& text) {
    static const jinja::Variable::Object variables =
        test::jinja_variables(*test::jinja_golden().find("conversations")->find("tools"), true);
    error_of([&] { jinja::Template::parse(text, "t").render(variables, test::jinja_now()); });
}

TEST(JinjaDamage, Truncations) {
    for (const std::string& name : golden_names()) {
        const std::string text = test::jinja_file(name);
        for (size_t length = 0; length < text.size(); ++length) survive(text.substr(0, length));
    }
}

TEST(JinjaDamage, RandomBytes) {
    std::mt19937 random(20260704);
    const auto below = [&](size_t limit) { return size_t(random() % limit); };
    const std::string pieces = "{}%|()[].'\"-+~:,=<>0 \n\\xif";
    for (int round = 0; round < test::rounds(4000); ++round) {
        std::string text = test::jinja_file(golden_names()[size_t(round) % golden_names().size()]);
        for (size_t change = 1 + below(4); change > 0; --change) {
            const size_t at = below(text.size()), from = below(text.size());
            const size_t length = std::min(below(30), text.size() - std::max(at, from));
            switch (below(4)) {
                case 0:
                    text[at] = char(random());
                    break;
                case 1:
                    text[at] = pieces[below(pieces.size())];
                    break;
                case 2:
                    text.insert(at, text.substr(from, length));
                    break;
                default:
                    text.erase(at, length);
            }
            if (text.empty()) break;
        }
        survive(text);
    }
}

}  // namespace
}  // namespace aerie
