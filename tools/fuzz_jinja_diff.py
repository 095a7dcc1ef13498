# SPDX-License-Identifier: Apache-2.0
"""Random expressions and statements through our engine and jinja2: prints where they differ.

    fuzz_jinja_diff.py build/tests/unit/jinja_render [--seed N] [--count N] [--show N]

Compared: the text, or that both fail. Left out, as known differences: results that print the
address of an object, integers beyond 64 bits, lazy filters whose failure jinja2 never reaches, and
slices of constants that have none (jinja2 folds them to undefined; at run time it fails too)."""
import argparse
import json
import random
import re

from jinja_reference import ours, reference

ATOMS = ["1", "0", "-1", "3", "7", "2.5", "0.0", "1e16", "'a'", "''", "'Ab c'", "'a,b,c'",
         "'  x '", "'éß日'", "'%s'", "'{}'", "'12'", "'-3.5'", "true", "false", "none", "[]",
         "[1, 2, 3]", "()", "['b', 'A', 'c']", "(1, 'x')", "{}", "{'a': 1, 'b': [2]}",
         "[[1, 2], [3]]", "range(4)", "s", "n", "f", "t", "no", "xs", "ss", "d", "people",
         "words", "lines", "uni", "nested", "u", "d.a", "d['b']", "people[0]", "xs[0]",
         "people[1].name", "ns.a", "s[0]"]
BINARY = ["+", "-", "*", "/", "//", "%", "**", "~", "==", "!=", "<", "<=", ">", ">=", "and",
          "or", "in", "not in"]
FILTERS = ["abs", "attr('a')", "batch(2)", "batch(2, 0)", "capitalize", "center(9)", "count",
           "d('x')", "default('x', true)", "dictsort", "dictsort(true)", "dictsort(by='value')",
           "dictsort(reverse=true)", "e", "escape", "first", "float", "float(1)", "forceescape",
           "groupby('age')", "groupby(0)", "indent", "indent(2)", "indent(1, true)",
           "indent(2, true, true)", "int", "int(5)", "int(0, 16)", "items", "join", "join(',')",
           "join('-', 'name')", "join(attribute='name')", "last", "length", "list", "lower",
           "map('upper')", "map(attribute='name')", "map('first')", "map('int')",
           "map('string')", "map(attribute='a.b', default='z')", "max", "max(attribute='age')",
           "min", "reject('odd')", "reject('string')", "reject", "rejectattr('age')",
           "replace('a', 'b')", "replace('', '.')", "replace('a', 'bc', 1)", "reverse", "round",
           "round(1)", "round(1, 'floor')", "round(0, 'ceil')", "round(-1)", "safe", "select",
           "select('even')", "select('in', xs)", "selectattr('name', 'eq', 'bob')", "slice(2)",
           "slice(3, 'f')", "sort", "sort(true)", "sort(case_sensitive=true)",
           "sort(attribute='age')", "sort(attribute='age,name')", "string", "sum", "sum('age')",
           "sum(start=2)", "title", "tojson", "tojson(indent=2)", "tojson(ensure_ascii=true)",
           "tojson(sort_keys=true)", "trim", "trim('a')", "truncate(5)",
           "truncate(5, true, '.', 0)", "unique", "unique(true)", "unique(attribute='age')",
           "upper", "urlencode", "wordcount", "format(1)", "format('x', 2)"]
TESTS = ["boolean", "callable", "defined", "divisibleby 2", "eq 1", "equalto('a')", "even",
         "false", "float", "ge 1", "in xs", "in 'abc'", "integer", "iterable", "lower", "lt 2",
         "mapping", "ne none", "none", "number", "odd", "sameas none", "sequence", "string",
         "true", "undefined", "upper", "escaped"]
METHODS = ["upper()", "lower()", "title()", "capitalize()", "swapcase()", "strip()",
           "strip('a ')", "lstrip()", "rstrip()", "split()", "split(',')", "split(none, 1)",
           "split('a', 1)", "rsplit(',', 1)", "rsplit(none, 1)", "splitlines()",
           "splitlines(true)", "startswith('a')", "endswith(('c', 'b'))", "find('a')",
           "rfind('b')", "find('a', 1)", "find('a', -2)", "index('a')", "count('a')",
           "count('')", "replace('a', 'x')", "replace('', '-', 2)", "join(ss)", "join('xy')",
           "format(1)", "format(s, n)", "center(9, '*')", "ljust(4)", "rjust(5)", "zfill(6)",
           "partition(',')", "rpartition(',')", "removeprefix('a')", "removesuffix('c')",
           "isalpha()", "isdigit()", "isupper()", "islower()", "isspace()", "isalnum()",
           "istitle()", "isnumeric()", "expandtabs(2)", "items()", "keys()", "values()",
           "get('a')", "get('zz', 1)", "index(2)", "count(1)", "copy()", "is_integer()"]
FORMATS = ["%s", "%5s", "%-5s|", "%.2s", "%d", "%05d", "%+d", "%x", "%#o", "%f", "%.2f",
           "%8.3e", "%g", "%r", "%c", "%%", "%5.1f", "% d"]
SPECS = ["", ":5", ":<5", ":>6", ":^7", ":*^8", ":05d", ":+d", ":,", ":x", ":#b", ":.2f",
         ":8.3f", ":e", ":g", ":.1%", "!r", ":.2", ":d", ":s", ":+.1f", ":_", ":,.2f", "!s:>5"]

LOOP = ["", "{{ loop.index }}", "{{ loop.last }}", "{{ loop.length }}", "{{ loop.previtem }}",
        "{{ loop.nextitem }}", "{{ loop.changed(x) }}", "{{ loop.revindex0 }}",
        "{% if loop.index == 2 %}{% break %}{% endif %}",
        "{% if loop.first %}{% continue %}{% endif %}"]

DATA = {"s": "a Word, a <b>", "n": 7, "f": 2.5, "t": True, "no": None, "xs": [3, 1, 2],
        "ss": ["b", "A", "c", "a"], "words": "  one two  three ", "lines": "a\nb\r\n\n  c",
        "uni": "Straße ÀÉ ΣΊΣΥΦΟΣ 日本", "nested": [[1, 2], [3, [4]]],
        "d": {"b": 2, "a": 1, "items": "shadow", "C": None},
        "people": [{"name": "Ann", "age": 30}, {"name": "bob", "age": 25},
                   {"name": "Cid", "age": 30}]}

# What cannot be compared: addresses, and 64-bit refusals of ours.
SKIP_TEXT = re.compile(r"0x[0-9a-f]{6,}|<generator|<built-in|<function|<bound|<list_reverse|"
                       r"<dict_reverse|<range_iter|<reversed|<jinja2|<class|<Macro|<Loop|Context|"
                       r"str_reverse|<method|iterator object|<slot wrapper", re.IGNORECASE)
SKIP_ERROR = re.compile(r"64 bits|complex numbers|urlencode of a collection|a precision without|"
                        r"nested fields|the template (uses|runs|is)|output is too long|width too")
LAZY = re.compile(r"object is not (iterable|subscriptable)|Can only get item pairs|"
                  r"not all arguments converted|number is required")


class Maker:
    def __init__(self, seed):
        self.rng = random.Random(seed)

    def expression(self, depth):
        r = self.rng
        if depth <= 0 or r.random() < 0.12:
            return r.choice(ATOMS)
        kind = r.randrange(14)
        inner = lambda: self.expression(depth - 1)  # noqa: E731
        if kind < 3:
            return f"({inner()} {r.choice(BINARY)} {inner()})"
        if kind < 7:
            return f"({inner()} | {r.choice(FILTERS)})"
        if kind == 7:
            return f"({inner()} is {r.choice(['', 'not '])}{r.choice(TESTS)})"
        if kind == 8:
            return f"({inner()}).{r.choice(METHODS)}"
        if kind == 9:
            part = lambda: r.choice(["", "0", "1", "-1", "2", "-3", "9"])  # noqa: E731
            return f"({inner()})[{part()}:{part()}{r.choice(['', ':', ':2', ':-1', ':-2'])}]"
        if kind == 10:
            return f"({inner()})[{r.choice(['0', '-1', '1', '5', repr('a'), repr('name'), 'n'])}]"
        if kind == 11:
            return f"({inner()} if {inner()} else {inner()})"
        if kind == 12:
            if r.random() < 0.5:
                form = r.choice(FORMATS) + r.choice(["", " ", "-"])
                form += r.choice(["", r.choice(FORMATS)])
                return f"('{form}' % {r.choice([inner(), f'({inner()}, {inner()})'])})"
            form = "{" + r.choice(["", "0"]) + r.choice(SPECS) + "}" + r.choice(["", "|"])
            return f"'{form}'.format({inner()})"
        return r.choice(["-", "not ", "+"]) + f"({inner()})" if r.random() < 0.4 else \
            r.choice([f"[{inner()}, {inner()}]", f"{{'k': {inner()}}}", f"({inner()},)"])

    def space(self):
        return self.rng.choice(["", "", " ", "\n", "  \n", "\n  ", "\t", "x", "\n\n"])

    def tag(self, body):
        r = self.rng
        signs = ["", "", "-", "+"]
        return "{%" + r.choice(signs) + f" {body} " + r.choice(signs) + "%}"

    def statement(self, depth):
        r = self.rng
        inner = lambda: self.body(depth - 1)  # noqa: E731
        kind = r.randrange(13)
        value = self.expression(1)
        if depth <= 0 or kind < 3:
            signs = ["", "-"]
            return "{{" + r.choice(signs) + f" {self.expression(2)} " + r.choice(signs) + "}}"
        if kind < 5:
            other = self.tag("else") + inner() if r.random() < 0.5 else ""
            return self.tag(f"if {value}") + inner() + other + self.tag("endif")
        if kind < 8:
            name = r.choice(["i", "n", "x", "a"])
            test = f" if {self.expression(1)}" if r.random() < 0.3 else ""
            of = r.choice(["xs", "ss", "range(3)", "'ab'", "nested", value])
            loop = r.choice(LOOP)
            other = self.tag("else") + inner() if r.random() < 0.2 else ""
            return (self.tag(f"for {name} in {of}{test}") + loop + inner() + other +
                    self.tag("endfor"))
        if kind == 8:
            return self.tag(f"set {r.choice(['x', 'n', 'ns.a', 's'])} = {self.expression(2)}")
        if kind == 9:
            name = r.choice(["x", "a", "n"])
            through = r.choice(["", " | upper"])
            return self.tag(f"set {name}{through}") + inner() + self.tag("endset")
        if kind == 10:
            name = r.choice(["m", "k"])
            call = r.choice([f"{name}(1)", f"{name}({value})", f"{name}(a=1, b=2)", f"{name}()"])
            return (self.tag(f"macro {name}(a, b={self.expression(1)})") + inner() +
                    "{{ a }}{{ b }}" + self.tag("endmacro") + f"{{{{ {call} }}}}")
        if kind == 11:
            through = r.choice(["upper", "trim", "replace('a', 'b')", "title"])
            return self.tag(f"filter {through}") + inner() + self.tag("endfilter")
        return r.choice(["{# c #}", "{#- c -#}", "{# c +#}", "{% raw %}{{ x }}{% endraw %}",
                         "{%- raw -%} a {%- endraw -%}", self.tag("with a = 1") + inner() +
                         self.tag("endwith"), self.tag("generation") + inner() +
                         self.tag("endgeneration")])

    def body(self, depth):
        parts = [self.space() + self.statement(depth) for _ in range(self.rng.randint(1, 3))]
        return "".join(parts) + self.space()

    def template(self):
        if self.rng.random() < 0.6:
            return "{{ " + self.expression(3) + " }}"
        return "{% set ns = namespace(a=1) %}" + self.body(3)


def comparable(text, why, result):
    if text is not None and (SKIP_TEXT.search(text) or re.search(r"\d{19}", text)):
        return False
    if why and ("OverflowError" in why or "Exceeds the limit" in why or "MemoryError" in why):
        return False
    if text is not None and LAZY.search(result.get("error", "")):
        return False
    return not ("error" in result and SKIP_ERROR.search(result["error"]))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=20000)
    parser.add_argument("--show", type=int, default=20)
    args = parser.parse_args()
    maker, cases, wanted = Maker(args.seed), [], []
    for _ in range(args.count):
        template = maker.template()
        if re.search(r"\*\*.*\*\*", template) or "* 1e16" in template:
            continue  # towers of powers only exercise Python's big integers
        wanted.append(reference(template, json.loads(json.dumps(DATA))))
        cases.append((template, DATA))
    different = rendered = compared = 0
    for (template, _), (text, why), result in zip(cases, wanted, ours(args.binary, cases)):
        if not comparable(text, why, result):
            continue
        compared += 1
        rendered += text is not None
        if result.get("text") == text and ("error" in result) == (text is None):
            continue
        different += 1
        if different <= args.show:
            print(f"{template!r}\n  jinja2: {text!r} {why or ''}\n"
                  f"  ours:   {result.get('text')!r} {result.get('error', '')}")
    print(f"{compared} compared, {rendered} of them render, {different} differ")
    return different != 0


if __name__ == "__main__":
    raise SystemExit(main())
