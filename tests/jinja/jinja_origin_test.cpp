// No template can make the caller's text look like its own, however it rearranges the text.
#include "jinja/jinja.h"

#include "jinja/jinja_data.h"

namespace aerie {
namespace {

using jinja::kTemplate;
using jinja::Label;
using jinja::Rendered;
using jinja::Run;
using jinja::Variable;
using test::kData;

constexpr Label kAnswer = 2;  // another text of the caller, trusted less

// The caller's data has only the letters U to Z, small or capital, and no template here has them.
Rendered render(const std::string& text) {
    Variable::Object dict = {{"xuk", Variable(Json("ux vy"), kAnswer)},
                             {"n", Variable(Json(int64_t(77)), kData)}};
    const Variable::Object variables = {
        {"u", Variable(Json("  Xyz, uvw. <|zz|>  "), kData)},
        {"a", Variable(Json("vuvu"), kAnswer)},
        {"d", Variable(std::move(dict), kData)},
        {"l", Variable(Json::parse(R"(["xu", "yv", {"zx": "wu"}])", "l"), kData)},
    };
    return jinja::Template::parse(text, "t").render(variables, test::jinja_now());
}

Label label_at(const Rendered& rendered, size_t at) {
    size_t end = 0;
    for (const Run& run : rendered.runs) {
        end += run.bytes;
        if (at < end) return run.label;
    }
    ADD_FAILURE() << "runs end before the text";
    return kTemplate;
}

std::string marked(const Rendered& rendered) {
    std::string labels;
    for (size_t i = 0; i < rendered.text.size(); ++i) {
        labels += char('0' + label_at(rendered, i));
    }
    return labels;
}

// Templates, their results, and the labels of the results' bytes.
const struct {
    std::string text, result, labels;
} kLabelled[] = {
    {"A{{ a }}B", "AvuvuB", "022220"},
    {"{{ 'A' + a + 'B' }}", "AvuvuB", "022220"},
    {"{{ 'A' ~ a ~ 'B' }}", "AvuvuB", "022220"},
    {"{{ ('AB' + a)[1:4] }}", "Bvu", "022"},
    {"{{ ('AB' + a)[::-1] }}", "uvuvBA", "222200"},
    {"{{ ('ab' + a) | upper }}", "ABVUVU", "002222"},
    {"{{ a | replace('u', 'A') }}", "vAvA", "2020"},
    {"{{ 'BCD' | replace('C', a) }}", "BvuvuD", "022220"},
    {"{{ a.split('u') | join('-') }}", "v-v-", "2020"},
    {"{{ a | list | join('-') }}", "v-u-v-u", "2020202"},
    {"{{ [a, 'A'] | join(a) }}", "vuvuvuvuA", "222222220"},
    {"{{ [a, 'A'] }}", "['vuvu', 'A']", "0222222000000"},
    {"{{ {'k': a} | tojson }}", "{\"k\": \"vuvu\"}", "0000002222220"},
    {"{{ l | tojson }}", "[\"xu\", \"yv\", {\"zx\": \"wu\"}]", std::string(26, '1')},
    {"{{ l[2] }}", "{'zx': 'wu'}", std::string(12, '1')},
    {"{{ d | tojson }}", "{\"xuk\": \"ux vy\", \"n\": 77}",
     std::string(8, '1') + std::string(7, '2') + std::string(10, '1')},
    {"{{ d.n + 1 }}", "78", "11"},
    {"{{ a | length }}", "4", "2"},
    {"{{ a == 'b' }}", "False", "22222"},
    {"{{ 3 }}", "3", "0"},
    {"{% for c in a %}{{ loop.index }}{% endfor %}", "1234", "2222"},
    {"{{ '%s|%d' % (a, d.n) }}", "vuvu|77", "2222011"},
    {"{{ '{}|{:>4}'.format(a, 'b') }}", "vuvu|   b", "222200000"},
    {"{{ a | center(6) }}", " vuvu ", "222222"},
    {"{{ 'A' if a else 'B' }}", "A", "0"},
    {"{% set x %}A{{ a }}{% endset %}{{ x[0] }}{{ x[1] }}", "Av", "02"},
    {"{% macro m(x) %}A{{ x }}{% endmacro %}{{ m(a) | trim }}", "Avuvu", "02222"},
    {"{% set n = namespace(x='A') %}{% set n.x = n.x + a %}{{ n.x }}", "Avuvu", "02222"},
    {"{% filter upper %}a{{ a }}{% endfilter %}", "AVUVU", "02222"},
    {"{{ {a: 1} | list | first }}", "vuvu", "2222"},
    {"{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}", "xuk=ux vy;n=77;",
     "111022222010110"},
    {"{{ 'C<b>' | escape }}{{ ('<' + a) | escape }}", "C&lt;b&gt;&lt;vuvu", "000000000000002222"},
    {"{{ (a + '\nA') | indent(1, true) }}", " vuvu\n A", "22222220"},
    {"{{ ('A ' + a + ' B') | truncate(8, true, '', 0) }}", "A vuvu B", "00222200"},
    {"{{ ('A ' + a + ' B').partition(a)[2] }}", " B", "00"},
    {"{{ ('A<'|safe) + ('<' ~ a) }}", "A<&lt;vuvu", "0000002222"},
    {"{{ ('%s|%5s'|safe) % (a, '<') }}", "vuvu| &lt;", "2222000000"},
    {"{{ ('{}<'|safe).format(a) }}", "vuvu<", "22220"},
    {"{{ (', '|safe).join([a, 'A']) }}", "vuvu, A", "2222000"},
    {"{{ ('A<b>' ~ a ~ '</b>')|striptags }}", "Avuvu", "02222"},
    {"{{ ('A<!--' ~ a ~ '--> B')|striptags }}", "A B", "020"},
    {"{{ ('&am' ~ 'p;' ~ a)|striptags }}", "&vuvu", "02222"},
    {"{{ ('&#' ~ d.n ~ ';A')|striptags }}", "MA", "10"},
    {"{{ d.n|filesizeformat }}", "77 Bytes", "11111111"},
    {"{% macro m() %}A{{ caller(a) }}{% endmacro %}{% call(x) m() %}B{{ x }}{% endcall %}",
     "ABvuvu", "002222"},
    {"{% for x in [a] recursive %}A{{ x if loop.depth > 1 else loop([x]) }}{% endfor %}", "AAvuvu",
     "002222"},
    {"{% macro m() %}{{ varargs[0] }}{{ kwargs.k }}{% endmacro %}{{ m(a, k=a) }}", "vuvuvuvu",
     "22222222"},
    {"{% set j = joiner(a) %}{{ j() }}A{{ j() }}", "Avuvu", "02222"},
    {"{% set c = cycler(a, 'A') %}{{ c.next() }}{{ c.next() }}", "vuvuA", "22220"},
    {"{{ [a, 'A']|slice(2)|map('join')|join('-') }}", "vuvu-A", "222200"},
    {"{{ 'AB'.join(a) }}", "vABuABvABu", "2002002002"},
};

TEST(JinjaOrigin, EveryByteKeepsItsLabel) {
    for (const auto& one : kLabelled) {
        SCOPED_TRACE(one.text);
        const Rendered rendered = render(one.text);
        EXPECT_EQ(rendered.text, one.result);
        EXPECT_EQ(marked(rendered), one.labels);
    }
}

// Sources of the data, steps on the data, and further steps on the results.
const char* const kSources[] = {"u",
                                "a",
                                "d",
                                "l",
                                "l[2]",
                                "u[2:]",
                                "u.split()",
                                "d.xuk",
                                "d.keys()",
                                "d.items()",
                                "d|tojson",
                                "l|tojson(indent=2)",
                                "[u, a]",
                                "{u: a}",
                                "(u, a)",
                                "u ~ a",
                                "'A' ~ u",
                                "u|list",
                                "l|map('string')",
                                "a|upper"};
const char* const kSteps[] = {"",
                              "|upper",
                              "|lower",
                              "|title",
                              "|capitalize",
                              "|trim",
                              "|list",
                              "|join",
                              "|join('A')",
                              "|string",
                              "|tojson",
                              "|tojson(indent=2)",
                              "|tojson(ensure_ascii=true)",
                              "|first",
                              "|last",
                              "|reverse",
                              "|list|reverse|list",
                              "|string|list|sort|join",
                              "|unique|join",
                              "|string|replace('.', 'A')",
                              "|string|replace(' ', '')",
                              "|string|escape",
                              "|string|indent(2, true)",
                              "|string|center(60)",
                              "|string|truncate(9, true)",
                              "|batch(2)|list",
                              "|map('string')|join",
                              "|map('upper')|list",
                              "|select|list",
                              "|groupby(0)",
                              "|max",
                              "|min",
                              "|string|format",
                              "|safe",
                              "|string|e|forceescape",
                              "|string|striptags",
                              "|slice(2)|map('join')|list",
                              "|default('A')",
                              "|dictsort",
                              "|items|list"};
const char* const kEnds[] = {"",
                             "|string|trim",
                             "[1:]",
                             "[::-1]",
                             ".strip('<|')",
                             "~ 'A'",
                             "* 2",
                             ".split('z')",
                             ".title()",
                             "|tojson",
                             ".rsplit(' ', 1)",
                             ".replace('z', '|')",
                             ".partition('z')",
                             ".swapcase()",
                             ".splitlines()[0]",
                             ".zfill(50)",
                             "[2]",
                             "|list|tojson",
                             ".join(['A', a])",
                             ".format(a)",
                             "+ 'A'",
                             "+ ('<A>'|safe)",
                             ".casefold()",
                             "|format(a)",
                             ".removeprefix(' ')"};

// Whatever the result is, a letter of the data never has the template's label.
TEST(JinjaOrigin, NothingLaunders) {
    size_t rendered_count = 0;
    for (const std::string source : kSources) {
        for (const char* step : kSteps) {
            for (const char* end : kEnds) {
                const std::string text = "A{{ (" + source + step + ")" + end + " }}B";
                Rendered rendered;
                if (!test::error_of([&] { rendered = render(text); }).empty()) continue;
                // Words that printing adds by itself.
                if (rendered.text.find("Undefined") != std::string::npos ||
                    rendered.text.find("Markup(") != std::string::npos)
                    continue;
                ++rendered_count;
                for (size_t i = 0; i < rendered.text.size(); ++i) {
                    // Escapes like U+0075, which tojson and repr might have written, do not occur.
                    const char letter = char(rendered.text[i] | 0x20);
                    if (letter < 'u' || letter > 'z') continue;
                    ASSERT_NE(label_at(rendered, i), kTemplate) << text << "\n" << rendered.text;
                }
            }
        }
    }
    EXPECT_GT(rendered_count, 5000u);
}

TEST(JinjaOrigin, RunsAreMerged) {
    const std::vector<aerie::Run> expected = {{kTemplate, 3}, {kAnswer, 8}, {kTemplate, 1}};
    EXPECT_EQ(render("A{{ 'B' }}C{{ a }}{{ a }}D").runs, expected);
    EXPECT_TRUE(render("").runs.empty());
}

}  // namespace
}  // namespace aerie
