// Hostile templates, and the pieces that they are put together from.
#pragma once

#include <string>
#include <vector>

namespace aerie::test::jinja_hostile {

inline std::string repeated(const std::string& text, size_t times) {
    std::string all;
    for (size_t i = 0; i < times; ++i) all += text;
    return all;
}

inline std::string loop(const std::string& body) {
    return "{% for i in range(99999) %}" + body + "{% endfor %}";
}

inline const std::string kX = "{% set x = 'a' * 4000000 %}{% set y = 'b' * 4000000 %}";
inline const std::string kMany =
    "{% set m = range(99999)|list %}{% set t = ('a',) * 99999 %}{% set n = namespace(l=[], s='') "
    "%}";

struct Case {
    std::string name, text;
};

inline std::vector<Case> templates() {
    std::string names, long_names, maps, fields;
    for (int i = 0; i < 400; ++i) {
        names += "{% set v" + std::to_string(i) + " = " + std::to_string(i) + " %}";
        long_names += "{% set " + std::string(190, 'v') + std::to_string(1000 + i) + " = 1 %}";
    }
    for (int i = 0; i < 20'000; ++i) maps += "'map',", fields += "a" + std::to_string(i) + "=1,";
    const std::string many = repeated("a,", 40'000);
    return {
        {"many names", names + loop("{{ nothing }}{{ v399 }}")},
        {"many long names", long_names + loop("{{ nothing }}")},
        {"a name of 300 bytes", "{{ " + std::string(300, 'v') + " }}"},
        {"namespace of long names",
         kX + "{% set n = namespace({x: 1, 'a': 2}) %}" + loop("{{ n[y] }}{{ n.a }}")},
        {"filters inside filters", "{{ 'a'|map(" + maps + "'upper')|list }}"},
        {"some filters inside filters",
         "{{ 'a'|map(" + maps.substr(0, 6 * 200) + "'upper')|list }}"},
        {"tests inside filters", "{{ ['a']|map(" + maps + "'select', 'eq', 1)|list }}"},
        {"macro of many parameters",
         "{% macro m(" + many + "b) %}{% endmacro %}" + loop("{{ m() }}")},
        {"call with many arguments",
         "{% macro m(a) %}{% endmacro %}" + loop("{{ m(" + fields + "b=1) }}")},
        {"format with many names", loop("{{ '{}{}'.format(" + fields + "b=1) }}")},
        {"frames", loop("{% with a = 1 %}{% endwith %}{% with a = 1 %}{% endwith %}")},
        {"frames of macros", "{% macro m(a, b, c) %}{% endmacro %}" + loop("{{ m(1) }}{{ m(2) }}")},
        {"namespaces", loop("{% set n = namespace(a=1, b=2, c=3, d=4) %}")},
        {"namespace that grows", kMany + loop("{% set n.l = [n.l, i] %}")},
        {"lists kept", kMany + loop("{% set n.l = m[:] %}")},
        {"nested loops over long lists",
         repeated("{% for i in range(99999) %}", 40) + repeated("{% endfor %}", 40)},
        {"nested loops with conditions",
         repeated("{% for i in range(99999) if 1 %}", 40) + repeated("{% endfor %}", 40)},
        {"nested blocks", kX + repeated("{% set z %}{{ x }}", 40) + repeated("{% endset %}", 40)},
        {"nested blocks of data", "{% set x = u * 1000 %}" + repeated("{% set z %}{{ x }}T", 40) +
                                      repeated("{% endset %}", 40)},
        {"nested filters",
         kX + repeated("{% filter upper %}{{ x }}", 40) + repeated("{% endfilter %}", 40)},
        {"recursion", "{% macro m(n) %}{{ m(n) }}{% endmacro %}{{ m(1) }}"},
        {"recursive loop without end", "{% for i in [1] recursive %}{{ loop([1]) }}{% endfor %}"},
        {"recursive loop of itself",
         "{% for i in [1, 2] recursive %}{{ loop([loop, loop]) }}{% endfor %}"},
        {"recursive loop that branches",
         "{% for i in range(9) recursive %}{{ loop(range(9)) if loop.depth < 30 }}{% endfor %}"},
        {"recursive loop of texts",
         kX + "{% for i in [1] recursive %}{{ x }}{{ loop([1]) if loop.depth < 60 }}{% endfor %}"},
        {"recursive loop in blocks", "{% for i in [1] recursive %}" +
                                         repeated("{% set z %}{% if 1 %}", 20) + "{{ loop([1]) }}" +
                                         repeated("{% endif %}{% endset %}", 20) + "{% endfor %}"},
        {"recursive loop that is kept",
         "{% set n = namespace() %}{% for i in [1] recursive %}{% set n.l = loop %}"
         "{{ n.l([1]) }}{% endfor %}{{ n.l([1]) }}"},
        {"recursive loop else", "{% for i in [] recursive %}{% else %}{{ loop([]) }}{% endfor %}"},
        {"caller that calls itself",
         "{% set n = namespace() %}{% macro m() %}{% set n.c = caller %}{{ caller() }}{% endmacro "
         "%}"
         "{% call m() %}{{ n.c() }}{% endcall %}"},
        {"callers inside each other",
         "{% macro m() %}{% call m() %}{{ caller() }}{% endcall %}{% endmacro %}"
         "{% call m() %}{% endcall %}"},
        {"callers of texts", kX + "{% macro m() %}{{ caller() }}{{ caller() }}{% endmacro %}" +
                                 repeated("{% call m() %}", 40) + "{{ x }}" +
                                 repeated("{% endcall %}", 40)},
        {"nested callers", "{% macro m() %}{{ caller() }}{{ caller() }}{% endmacro %}" +
                               repeated("{% call m() %}", 40) + "a" +
                               repeated("{% endcall %}", 40)},
        {"varargs that grow", "{% macro m() %}{{ m(1, *varargs) }}{% endmacro %}{{ m() }}"},
        {"varargs that double",
         "{% macro m() %}{{ m(1, *(varargs + varargs)) }}{% endmacro %}{{ m(1) }}"},
        {"kwargs that grow", kX + "{% macro m(n) %}{{ m(n + 1, **dict(kwargs, **{x[:n]: n})) }}{% "
                                  "endmacro %}{{ m(1) }}"},
        {"many values for a call", kMany + "{{ range(*m) }}"},
        {"many names for a call", "{{ dict(**{}.fromkeys(range(999)|map('string'))) }}"},
        {"macros of many names",
         "{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}" + loop("{{ m(1, a=2) }}")},
        {"joiner that grows", "{% set n = namespace(j=joiner('ab')) %}" +
                                  loop("{% set n.j = joiner(n.j() ~ n.j() ~ n.j()) %}")},
        {"cycler that grows", "{% set n = namespace(c=cycler('ab')) %}" +
                                  loop("{% set n.c = cycler(n.c.next() ~ n.c.next()) %}")},
        {"cycler of itself",
         "{% set n = namespace(c=1) %}" + loop("{% set n.c = cycler(n.c) %}") + "{{ n.c.items }}"},
        {"cyclers", loop("{% set z = cycler(1, 2) %}{% set y = joiner() %}")},
        {"safe text that grows",
         "{% set n = namespace(s='&'|safe) %}" + loop("{% set n.s = n.s|forceescape + '&' %}")},
        {"safe format that grows", "{% set n = namespace(s='%s'|safe) %}" +
                                       loop("{% set n.s = ('%s%s'|safe) % (n.s, n.s) %}")},
        {"safe join that grows",
         "{% set n = namespace(s='a'|safe) %}" + loop("{% set n.s = n.s.join([n.s, '<']) %}")},
        {"many macros that are open", repeated("{% macro m() %}", 60) +
                                          repeated("{{ varargs }}", 10'000) +
                                          repeated("{% endmacro %}", 60)},
        {"many stars", "{{ dict(" + repeated("*a,", 30'000) + ") }}"},
        {"fields inside fields", "{{ ('{:' * 9999 ~ '}' * 9999).format(1) }}"},
        {"fields of many braces", "{{ ('{' * 400000).format() }}{{ ('{a' * 400000).format(a=1) }}"},
        {"path of a field", kX + "{{ ('{0' ~ '[0]' * 900000 ~ '}').format('a') }}"},
        {"name of a field", kX + "{{ ('{' ~ x[:2000000] ~ '}').format(a=1) }}"},
        {"widths of stars", "{{ '%*d' % (-9223372036854775807 - 1, 1) }}"},
        {"zeros in groups", "{{ '{:04096,.100f}'.format(1e300) }}"},
        {"percent of the greatest", "{{ '{:.100%}{:.100}'.format(1.7e308, 1.7e308) }}"},
        {"character beyond", "{{ '%c' % 55296 }}{{ '{:c}'.format(1114112) }}"},
        {"tabulators", "{{ ('\t' * 99999).expandtabs(9223372036854775807) }}"},
        {"width of a time", "{{ strftime_now('%99999999999999999999Y') }}"},
        {"recursion with texts",
         kX + "{% macro m(n) %}{{ n }}{{ m(n ~ 'a') }}{% endmacro %}{{ m(x[:2000000]) }}"},
        {"two recursions",
         "{% macro m(n) %}{{ m(n) if n else '' }}{{ m(n - 1) if n else '' }}"
         "{% endmacro %}{{ m(60) }}"},
        {"output of 4 MB", kX + "{{ x }}"},
        {"output beyond 4 MB", kX + "{{ x }}{{ y }}"},
        {"text and data in turns", "{{ (u * 2000)|list|join('-') }}"},
        {"text and data in turns, by replacing", "{{ (u * 2500)|replace('z', 'A') }}"},
        {"doubling text", "{% set n = namespace(s='ab') %}" + loop("{% set n.s = n.s ~ n.s %}")},
        {"doubling lists", kMany + loop("{% set n.l = n.l + [n.l] %}")},
        {"a list of itself", "{% set n = namespace(l=[1]) %}" +
                                 repeated("{% set n.l = [n.l, n.l] %}", 60) + "{{ n.l }}"},
        {"a list of itself as JSON", "{% set n = namespace(l=[1]) %}" +
                                         repeated("{% set n.l = [n.l, n.l] %}", 60) +
                                         "{{ n.l|tojson(indent=9) }}"},
        {"ranges", "{{ range(0, 9223372036854775807, 4611686018427387904) }}"},
        {"ranges below",
         "{{ range(-9223372036854775807, 9223372036854775807, "
         "9223372036854775806)[::2] }}"},
        {"range of ends", "{{ range(9223372036854775806, 9223372036854775807) }}"},
        {"range down", "{{ range(5, -9223372036854775807, -9223372036854775807) }}"},
        {"range of steps", "{{ range(1, 2, -9223372036854775807 - 1)|list }}"},
        {"slices of ends", "{{ 'abc'[-9223372036854775807 - 1:9223372036854775807] }}"},
        {"slices backwards", "{{ 'abc'[::-9223372036854775807 - 1] }}"},
        {"slices of lists", "{{ [1, 2, 3][2:-9223372036854775807 - 1:-9223372036854775807 - 1] }}"},
        {"least number", "{{ (-9223372036854775807 - 1) % 3 }}"},
        {"least number divided", "{{ (-9223372036854775807 - 1) // 3 }}"},
        {"least number by -1", "{{ (-9223372036854775807 - 1) % -1 }}"},
        {"least number's size", "{{ (-9223372036854775807 - 1)|abs }}"},
        {"least number printed", "{{ '%d %x' % (-9223372036854775807 - 1, 5) }}"},
        {"powers", "{{ 3 ** 40 }}"},
        {"powers of -1", "{{ (-1) ** 9223372036854775807 }}"},
        {"round", "{{ 1e300|round(100) }}"},
        {"format of 1e300", "{{ '%.100f' % 1e300 }}"},
        {"thousands", "{{ '{:,.100f}'.format(1e300) }}"},
        {"truncate to less", "{{ 'abc'|truncate(-9223372036854775807) }}"},
        {"truncate with leeway", "{{ 'abc'|truncate(2, true, '', 9223372036854775807) }}"},
        {"center", "{{ 'abc'|center(-9223372036854775807) }}"},
        {"center of the least", "{{ 'abc'|center(-9223372036854775807 - 1) }}"},
        {"ljust of the least", "{{ 'abc'.ljust(-9223372036854775807 - 1) }}"},
        {"zfill of the least", "{{ '-abc'.zfill(-9223372036854775807 - 1) }}"},
        {"indent", "{{ 'a\nb'|indent(-9223372036854775807) }}"},
        {"batch", "{{ [1]|batch(9223372036854775807)|list }}"},
        {"split", "{{ 'a a'.split(' ', -9223372036854775807 - 1) }}"},
        {"unterminated block", "{% if 1 %}"},
        {"unterminated tag", "{{ 1"},
        {"unterminated string", "{{ 'a"},
        {"unterminated comment", "{# a"},
        {"unterminated raw", "{% raw %}{{ 1 }}"},
        {"unterminated list", "{{ [1, "},
        {"unterminated everything", repeated("{% for i in [1] %}{{ [{(", 30)},
        {"ends alone", "{% endfor %}"},
        {"else alone", "{% else %}"},
        {"backslash at the end", "{{ 'a\\"},
        {"signs alone", "{{ - }}{%- -%}"},
        {"a megabyte of braces", repeated("{", 1 << 20)},
        {"a megabyte of brackets", "{{ " + repeated("[", 1'000'000)},
        {"a megabyte of tags", repeated("{{", 500'000)},
        {"a megabyte of raw", "{% raw %}" + repeated("{%  ", 260'000)},
        {"a megabyte of comments", repeated("{##}", 260'000)},
        {"a megabyte of lines", repeated("\n", 1 << 20)},
        {"a megabyte of returns", repeated("\r", 1 << 20)},
        {"a megabyte of spaces", "{{" + repeated(" ", 1'000'000) + "}}"},
        {"a megabyte of digits", "{{ " + repeated("1", 1'000'000) + " }}"},
        {"a megabyte of underscores", "{{ 1" + repeated("_", 1'000'000) + " }}"},
        {"a megabyte of exponents", "{{ 1e" + repeated("9", 1'000'000) + " }}"},
        {"a megabyte of escapes", "{{ '" + repeated("\\x41", 250'000) + "' }}"},
        {"more than a megabyte", repeated("a", (1 << 20) + 1)},
        {"no UTF-8", "{{ '\xFF' }}"},
        {"NUL", std::string("{{ '\0' }}{{ \0 }}", 17)},
        {"many steps", "{{ a" + repeated("[0]", 33'000) + " }}"},
        {"many slices", "{{ a" + repeated("[::]", 19'000) + " }}"},
        {"many calls", "{{ a" + repeated("(1)", 33'000) + " }}"},
        {"many filters", "{{ 'a'" + repeated("|trim", 49'000) + " }}"},
        {"many tests", "{{ 1" + repeated(" is odd", 49'000) + " }}"},
        {"many sums", "{{ 1" + repeated("+1", 49'000) + " }}"},
        {"many lists", "{{ [" + repeated("[],", 33'000) + "] }}"},
        {"many dicts", "{{ {" + repeated("1:{},", 19'000) + "} }}"},
        {"many different keys",
         [] {
             std::string all = "{{ {";
             for (int i = 0; i < 24'000; ++i) all += std::to_string(i) + ":1,";
             return all + "} }}";
         }()},
        {"many statements", repeated("{%set a=1%}", 16'000)},
        {"many macros", repeated("{%macro a(b=1)%}{%endmacro%}", 7'000)},
        {"many prints", repeated("{{1}}", 33'000)},
        {"many elifs", "{% if 0 %}" + repeated("{%elif 0%}", 24'000) + "{% endif %}"},
        {"many names to a value", "{% set " + repeated("a,", 49'000) + "b = 1 %}"},
        {"refusal of 4 MB", kX + "{{ raise_exception(x) }}"},
        {"refusal of lines", "{{ raise_exception('a\\nb\\x1b[2J') }}"},
        {"undefined of lines", "{{ {}['a\\nb'] + 1 }}"},
        {"undefined of 4 MB", kX + "{{ {}[x] + 1 }}"},
        {"unknown filter of lines", "{{ []|map('a\\nb')|list }}{{ [1]|map('a\\nb')|list }}"},
        {"unknown format", "{{ '%\\n' % 1 }}"},
        {"format that ends", "{{ '%' % 1 }}{{ '{' .format(1) }}"},
        {"dict of a dict", "{{ {{}: 1} }}"},
        {"names that are functions", "{% set range = 1 %}{{ range(5) }}"},
        {"namespace as a number", "{% set n = namespace() %}{{ n + 1 }}"},
    };
}

}  // namespace aerie::test::jinja_hostile
