// Templates made to take all time, all memory or the stack: each ends in an error of one line or a
// text, within kMaxSeconds of processor time and 64 MB.
#include "io/bounded.h"
#include "jinja/jinja_data.h"
#include "jinja/jinja_hostile_templates.h"

namespace aerie {
namespace {

using namespace test::jinja_hostile;

constexpr size_t kFewestCases = 150;

// Expressions that are cheap to write and costly to compute, to be run in a loop.
const char* const kExpressions[] = {"x.count('')",
                                    "x.count('a')",
                                    "x|safe",
                                    "(x|safe) + y",
                                    "(x|safe) + '<'",
                                    "(x|safe) * 2",
                                    "(x|safe).join([y])",
                                    "(x|safe).split('a', 1)",
                                    "(x|safe).upper()",
                                    "(x|safe).unescape()",
                                    "('%s'|safe) % x",
                                    "('{}'|safe).format(x)",
                                    "(x|e)|forceescape",
                                    "x|striptags",
                                    "('<!--' * 9999)|striptags",
                                    "('<!-->' * 9999)|striptags",
                                    "('<!<!---->--' * 9999)|striptags",
                                    "('<' * 99999)|striptags",
                                    "('<a>' * 99999)|striptags",
                                    "('&' * 99999)|striptags",
                                    "('&amp;' * 9999)|striptags",
                                    "('&#' ~ '9' * 99999)|striptags",
                                    "('&CounterClockwise' * 9999)|striptags",
                                    "m|slice(3)|list",
                                    "m|slice(99999)|list",
                                    "x|slice(2)|list",
                                    "x.istitle()",
                                    "x.isidentifier()",
                                    "x.isprintable()",
                                    "('\u03A3' * 99999).lower()",
                                    "('\u03A3.' * 99999).lower()",
                                    "('a' ~ '.' * 99999 ~ '\u03A3')|lower",
                                    "('\uFB03' * 99999).upper()",
                                    "m.copy()",
                                    "m.index(99998, 1, 99999)",
                                    "{}.fromkeys(m)",
                                    "cycler(m, x).next()",
                                    "joiner(x)()",
                                    "dict(**{x: 1})",
                                    "dict(**dict(a=x, b=m))",
                                    "range(*[99999])|list",
                                    "strftime_now('%1000Y' * 160)",
                                    "x.count('b')",
                                    "x.count('ab')",
                                    "x.find('b')",
                                    "x.rfind('b')",
                                    "x.find('', 3999999)",
                                    "x.rfind('')",
                                    "x.index('a', 3999999)",
                                    "x.startswith('b', 9999999)",
                                    "x.endswith('b', -1)",
                                    "x.startswith(x)",
                                    "x.strip()",
                                    "x.strip('b')",
                                    "x.strip(y)",
                                    "'c'.strip(x)",
                                    "'c'.lstrip(x)",
                                    "'c'.rstrip(x)",
                                    "x.lstrip('a')",
                                    "x.split('a', 1)",
                                    "x.split('b')",
                                    "x.rsplit('b')",
                                    "x.rsplit('ab')",
                                    "x.rsplit('aaaaaaaaaaaaaaab')",
                                    "x.rsplit('baaaaaaaaaaaaaaa')",
                                    "x.split('aaaaaaaaaaaaaaab')",
                                    "x.split()",
                                    "x.splitlines()",
                                    "x.partition('b')",
                                    "x.rpartition('b')",
                                    "x.replace('a', '')",
                                    "x.replace('', '')",
                                    "x.replace('b', '')",
                                    "x.replace('a', 'b', 1)",
                                    "x.upper()",
                                    "x.lower()",
                                    "x.title()",
                                    "x.swapcase()",
                                    "x.capitalize()",
                                    "x.casefold()",
                                    "x.isalpha()",
                                    "x.isupper()",
                                    "x.isspace()",
                                    "x.zfill(1)",
                                    "x.center(1)",
                                    "x.ljust(3)",
                                    "'a'.ljust(9, x)",
                                    "x.removeprefix(x)",
                                    "x.removesuffix('b')",
                                    "x.join(['', ''])",
                                    "''.join(t)",
                                    "x.format()",
                                    "'{}'.format(x)",
                                    "'{:>4096}'.format(1)",
                                    "'%4096d' % 1",
                                    "'%.1s' % x",
                                    "'%s' % x",
                                    "x % ()",
                                    "x[5]",
                                    "x[-1]",
                                    "x[5:]",
                                    "x[:5]",
                                    "x[::2]",
                                    "x[::-1]",
                                    "x[3999999:0:-3999999]",
                                    "x in y",
                                    "'b' in x",
                                    "x == x ~ ''",
                                    "x < y",
                                    "x + y",
                                    "x ~ 'a'",
                                    "x|length",
                                    "x|upper",
                                    "x|title",
                                    "x|trim",
                                    "x|escape",
                                    "x|list",
                                    "x|reverse",
                                    "x|tojson",
                                    "x|int",
                                    "x|float",
                                    "x|wordcount",
                                    "x|truncate(99999999)",
                                    "x|truncate(5)",
                                    "'a'|truncate(99999999, true, x)",
                                    "x|center(1)",
                                    "x|indent",
                                    "x|string",
                                    "x|first",
                                    "x|last",
                                    "x|replace('a', 'b')",
                                    "x|default('')",
                                    "x|batch(2)|list",
                                    "x|sort",
                                    "x|unique|list",
                                    "x|map('upper')|list",
                                    "x|select|list",
                                    "x|sum",
                                    "x|max",
                                    "x|join",
                                    "x is upper",
                                    "x is in y",
                                    "[x]|join",
                                    "{x: 1}[x]",
                                    "{x: 1}[y]",
                                    "[x, x] == [x, y]",
                                    "m == m[:]",
                                    "m|sum",
                                    "m|sort",
                                    "m|max",
                                    "m|min",
                                    "m|unique|list",
                                    "m|join",
                                    "m|tojson",
                                    "m|list",
                                    "m|reverse|list",
                                    "m|batch(3)|list",
                                    "m|map('string')|list",
                                    "m|select('odd')|list",
                                    "m|reject('in', m)|list",
                                    "m|groupby(0)",
                                    "m|string",
                                    "m.count(1)",
                                    "m.index(99998)",
                                    "99998 in m",
                                    "m[::-1]",
                                    "m[1:]",
                                    "m + m",
                                    "m * 2",
                                    "t[5]",
                                    "{t: 1}",
                                    "{1: 1}[t]",
                                    "'b'.startswith(t)",
                                    "m|dictsort",
                                    "m|items|list",
                                    "t|join",
                                    "t|groupby('x')",
                                    "t|map('upper')|join",
                                    "t|sort|join",
                                    "dict(a=m)|tojson",
                                    "dict(a=x)|string",
                                    "range(99999)|sum",
                                    "range(99999)|list|length",
                                    "loop.changed(x)",
                                    "loop.changed(m)",
                                    "loop.cycle(m)",
                                    "namespace(a=x).a",
                                    "namespace({x: 1})[y]",
                                    "strftime_now('%c' * 500)",
                                    "2 ** 62",
                                    "'a' * 4000000",
                                    "[1] * 99999",
                                    "('a' * 99)|list|join|list|join",
                                    "[m, m, m]|tojson",
                                    "[[m] * 9] * 9 == 1"};

class JinjaHostile : public testing::Test {
  protected:
    std::string problem(const std::string& name, const std::string& text) {
        const std::string message = bounded_.error_of(name, [&] {
            const auto chat = jinja::Template::parse(text, "t.jinja");
            const jinja::Rendered rendered = chat.render(kVariables, test::jinja_now());
            EXPECT_LE(rendered.text.size(), size_t(4) << 20);
            size_t covered = 0;
            for (const jinja::Run& run : rendered.runs) covered += run.bytes;
            EXPECT_EQ(covered, rendered.text.size());
        });
        EXPECT_TRUE(message.empty() || message.starts_with("t.jinja:")) << name << ": " << message;
        return message;
    }

    const jinja::Variable::Object kVariables = {
        {"u", jinja::Variable(Json(repeated("xyz", 333)), test::kData)}};
    test::Bounded bounded_{64u << 20};
};

TEST_F(JinjaHostile, ExpressionsInLoops) {
    size_t stopped = 0;
    for (const std::string expression : kExpressions) {
        for (const std::string& before : {kX + kMany}) {
            const std::string message =
                problem(expression, before + loop("{% set z = " + expression + " %}"));
            stopped += !message.empty();
        }
    }
    EXPECT_GE(bounded_.cases(), kFewestCases);
    EXPECT_GE(stopped * 10, bounded_.cases() * 9) << "they were to be costly";
}

TEST_F(JinjaHostile, Templates) {
    for (const Case& one : templates()) problem(one.name, one.text);
    EXPECT_GE(bounded_.cases(), 105u);
}

TEST_F(JinjaHostile, SaysWhatIsWrong) {
    const std::pair<std::string, const char*> cases[] = {
        {"{{ " + std::string(201, 'v') + " }}", "t.jinja:1: name of more than 200 bytes"},
        {"{{ range(300000) }}", "t.jinja:1: range: more than 100000 numbers"},
        {"{{ ([1] * 200001)|length }}", "t.jinja:1: list of more than 200000 items"},
        {"{{ range(0, 9223372036854775807, 4611686018427387904) }}",
         "t.jinja:1: number of more than 64 bits"},
        {"{{ dict(" + repeated("a=1,", 256) + ") }}", "t.jinja:1: more than 255 arguments"},
        {"\n" + loop("{% set a = range(9999)|list %}{% with b = a %}{% endwith %}"),
         "t.jinja:2: takes more than 32 MB"},
    };
    for (const auto& [text, error] : cases) EXPECT_EQ(problem(error, text), error);
    EXPECT_EQ(problem("", "{{ (-9223372036854775807 - 1) % 3 }}"), "");
    EXPECT_EQ(test::render_jinja("{{ (-9223372036854775807 - 1) % 3 }}").text, "1");
    EXPECT_EQ(test::render_jinja("{{ 'abcdef'[4:0:-2] }}{{ [1, 2, 3, 4][::3] }}").text, "ec[1, 4]");
}

}  // namespace
}  // namespace aerie
