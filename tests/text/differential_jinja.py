"""Random templates, rendered by Jinja2 with transformers' settings and by us.

usage: differential_jinja.py RENDER_TEMPLATES [--count N] [--first SEED] [--show N]
Exit code 77 without Jinja2 3.1. Where both fail, the messages may differ; a text must be the same.
"""
import argparse
import concurrent.futures
import datetime
import json
import random
import subprocess
import sys
import warnings

try:
    import jinja2
    from jinja2 import nodes
    from jinja2.compiler import CodeGenerator
    from jinja2.ext import Extension
    from jinja2.sandbox import ImmutableSandboxedEnvironment
except ImportError:
    print("no Jinja2 here")
    sys.exit(77)
if not jinja2.__version__.startswith("3.1."):
    print(f"Jinja2 {jinja2.__version__} is not 3.1")
    sys.exit(77)

warnings.simplefilter("ignore", SyntaxWarning)

CONTEXT = {
    "s": "Hello, World", "n": 5, "f": 2.5, "z": 0, "neg": -7, "t": True, "nul": None, "l": [3, 1, 2], "ls": ["b", "a", "C"],
        "e": [],
    "d": {"b": 1, "a": 2, "C": 3}, "u": "żółć 日本 🙂 ß", "ws": "  pad\n x\t", "nest": {"k": {"x": [1, {"y": "deep"}]}},
    "html": "<a href=\"x\">&'</a>", "sm": 1e-07, "lg": 1e16, "q": "it's \"q\"", "mixed": [1, 2.0, "x", None, True, [1], {"a": 1}],
    "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi", "n": 1},
                 {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "f", "arguments": {"x": 1,
                     "y": [1.5, "z"]}}}]},
                 {"role": "tool", "content": "{\"a\": 1}", "name": "f"}, {"role": "user", "content": [{"type": "text",
                     "text": "part"}]}],
    "tools": [{"type": "function", "function": {"name": "f", "description": "d\nd", "parameters": {"type": "object",
        "properties": {"x": {"type": "integer"}}}}}],
    "add_generation_prompt": True, "bos_token": "<s>", "eos_token": "</s>",
}
NAMES = list(CONTEXT) + ["missing", "i", "x", "m"]
FILTERS = ["abs", "attr('upper')", "attr('a')", "batch(2)|list", "batch(2, 0)|list", "capitalize", "center(9)", "count",
    "d('z')", "default('z')", "default('z', true)",
           "dictsort", "dictsort(reverse=true)", "dictsort(by='value')", "e", "escape", "first", "float", "float(1.5)",
               "forceescape", "groupby('role')", "groupby('n', default=0)|list",
           "indent", "indent(2, true)", "indent('> ', blank=true)", "int", "int(7)", "int(base=16)", "items|list", "join",
               "join(', ')", "join(', ', 'role')",
           "last", "length", "list", "lower", "map('upper')|list", "map(attribute='role')|list",
               "map(attribute='n', default=0)|list", "map('length')|list",
           "map('string')|list", "max", "min", "min(attribute='n')", "pprint", "reject('none')|list", "rejectattr('n')|list",
               "rejectattr('role', 'eq', 'user')|list", "replace('l', 'L')",
           "replace('', '-')", "replace('a', 'b', 1)", "reverse", "reverse|list", "round", "round(1)", "round(-1)",
               "round(0, 'floor')", "round(2, 'ceil')", "safe", "select|list", "select('string')|list",
           "select('in', [1, 2])|list", "selectattr('role')|list", "selectattr('role', 'equalto', 'user')|list",
               "selectattr('n', 'defined')|list", "slice(2)|list", "slice(2, 'f')|list",
           "sort", "sort(reverse=true)", "sort(case_sensitive=true)", "sort(attribute='role')", "sort(attribute='role,n')",
               "string", "striptags", "sum", "sum(start=1)", "sum(attribute='n')",
           "title", "tojson", "tojson(indent=2)", "tojson(ensure_ascii=true)", "tojson(separators=(',', ':'))",
               "tojson(sort_keys=true)", "trim", "trim('H')", "truncate(5)",
           "truncate(5, true)", "truncate(6, false, '…', 0)", "unique|list", "upper", "urlencode", "wordcount", "xmlattr",
               "format(1)", "format('a', 2)", "nosuch"]
TESTS = ["defined", "undefined", "none", "boolean", "true", "false", "integer", "float", "number", "string", "sequence",
    "mapping", "iterable", "callable",
         "lower", "upper", "odd", "even", "divisibleby 2", "divisibleby(3)", "eq 5", "equalto('a')", "ne 2", "gt 1", "lt 3",
             "ge 1", "le 5", "in [1, 2, 'a']", "sameas none", "escaped",
         "filter", "test", "nosuch"]
METHODS = ["upper()", "lower()", "strip()", "strip('x ')", "lstrip()", "rstrip()", "split()", "split(',')", "split(' ', 1)",
    "rsplit(None, 1)", "rsplit('l')", "splitlines()",
           "startswith('H')", "endswith(('d', 'x'))", "replace('l', 'L')", "replace('l', 'L', 1)", "find('o')", "rfind('o')",
               "index('W')", "count('l')", "count('')", "title()",
           "capitalize()", "swapcase()", "casefold()", "center(20, '*')", "ljust(15)", "rjust(15, '.')", "zfill(15)",
               "isdigit()", "isalpha()", "isspace()", "isupper()", "islower()",
           "istitle()", "isalnum()", "isidentifier()", "isprintable()", "isascii()", "isnumeric()", "isdecimal()",
               "partition(' ')", "rpartition(',')", "removeprefix('He')", "removesuffix('ld')",
           "join(['a', 'b'])", "join(l)", "format(1, a=2)", "expandtabs(4)", "encode", "get('a')", "get('q', 1)", "items()",
               "keys()", "values()", "items", "copy()", "append(1)",
           "index(1)", "count(1)", "pop()", "real", "bit_length()", "is_integer()", "role", "content", "function.name",
               "__class__", "nosuch", "nosuch()", "0", "x"]
FORMATS = ["'%s'", "'%d'", "'%5d|%-5d'", "'%05.1f'", "'%r'", "'%x'", "'%s=%s'", "'%(a)s'", "'%%'", "'%e'", "'%g'", "'%c'",
    "'%+d'", "'%.3s'"]
BRACES = ["{}", "{0}", "{a}", "{:>5}", "{:05d}", "{:.2f}", "{:,}", "{!r}", "{0[0]}", "{a[k]}", "{:x}", "{:^9}", "{:e}", "{:%}",
    "{{}}", "{:_}", "{:+}", "{:#x}", "{:g}", "{:*<6}"]


# What gives what: expressions that mostly render. {a} is an expression of the kind on the left, {s} a text, {n} a number.
KINDS = {
    "str": (["s", "u", "ws", "html", "q", "'a,b,,c'", "'żółw'", "''", "'12'", "' 3.7e1 '", "'Straße ΑΣ ǆ ŉ'", "'x\\ny\\r\\nz'",
        "messages[1].content", "bos_token", "'%5.1f|%s'", "'it\\'s'", "'aXbXc'"], {
        "str": ["{a}|upper", "{a}.lower()", "{a}|title", "{a}.title()", "{a}|capitalize", "{a}.swapcase()", "{a}.strip()",
            "{a}|trim('a x')", "{a}.rstrip('c')", "{a}|replace({s}, {s})", "{a}.replace({s}, '-', 1)",
                "{a}[{i}:{i}]", "{a}[::{k}]", "{a}[{i}]", "{a} ~ {s}", "{a} + {s}", "{a} * 2", "{a}|indent({n}, {b})",
                    "{a}|center(17)", "{a}.ljust(9, '.')", "{a}.zfill(9)", "{a}|e", "{a}|safe ~ {s}", "{a}|string",
                "{a}|truncate(5, {b}, '…', 0)", "{a}|urlencode", "{a}|striptags", "{a}|tojson", "{a}|reverse", "{a}|first",
                    "{a}|last", "{a}|default({s}, true)", "{a}.casefold()", "{a}.expandtabs(3)", "{a}.removeprefix('a')",
                "{a} if {b} else {s}", "{a}.join({l}|map('string'))", "'{{:>9}}|{{!r}}'.format({a}, {s})",
                    "'%r|%-9s' % ({a}, {s})", "{a}|format(1.5, 2)|string", "{a}|max", "({a}|e) + {s}", "{a}|e|replace('&', {s})"],
        "list": ["{a}.split()", "{a}.split(',')", "{a}.split(none, 1)", "{a}.rsplit('X', 1)", "{a}.rsplit(none, 1)", "{a}|list",
            "{a}.splitlines()", "{a}.splitlines(true)", "{a}.partition(',')", "{a}.rpartition('X')", "{a}|batch(3)|list"],
        "num": ["{a}|length", "{a}.count({s})", "{a}.find({s})", "{a}.rfind('X', 1)", "{a}|int({n})", "{a}|float",
            "{a}|wordcount", "{a}|int(base=16)"],
        "bool": ["{a}.startswith({s})", "{a}.endswith(('c', 'z'))", "{s} in {a}", "{a}.isdigit()", "{a}.isupper()",
            "{a}.istitle()", "{a} is lower", "{a} < {s}", "{a} == {s}", "{a}.isalnum()", "{a}.isspace()", "{a} is string"]}),
    "list": (["l", "ls", "e", "mixed", "messages", "range(5)|list", "[1, 'a', none]", "range(9)[2::3]|list", "d|list",
        "[[1, 2], [3]]", "tools"], {
        "list": ["{a}|reverse|list", "{a}|unique|list", "{a}[{i}:{i}]", "{a}[::{k}]", "{a} + {l}", "{a} * 2",
            "{a}|map('string')|list", "{a}|map('upper')|list", "{a}|select|list", "{a}|reject('none')|list",
            "{a}|batch(2, {s})|list",
                 "{a}|slice(2)|list", "{a}|map(attribute='role')|list", "{a}|selectattr('role', 'defined')|list",
                     "{a}|rejectattr('role')|list", "{a}|map(attribute='role', default={s})|list", "{a}|map('string')|sort|list",
                 "{a}|groupby('role', default='-')", "[{a}, {s}]", "{a}|map('length')|list", "{a}|select('string')|list",
                     "{a}|map('string')|map('replace', 'a', {s})|list", "{a}|select('in', {l})|list",
                     "{a}|map('tojson')|sort(reverse=true)"],
        "str": ["{a}|join({s})", "{a}|string", "{a}|tojson", "{a}|tojson(indent={n})", "{a}|join",
            "{a}|map('string')|join('|')", "{a}|tojson(separators=(',', ':'))", "{a}|map('string')|max",
            "{a}|tojson(sort_keys=true)"],
        "num": ["{a}|length", "{a}.count(1)", "{a}|select('number')|sum", "{a}|select('number')|max|default(0)"],
        "bool": ["1 in {a}", "{s} not in {a}", "{a} == {l}", "{a} is iterable", "{a} is sequence", "{a} != {a}",
            "{a}|map('string')|list < {a}|map('string')|list"]}),
    "dict": (["d", "nest", "tools[0]", "messages[0]", "{'k': 1, 2: 'x', none: [], true: 1.5}", "dict(a=1, b=s)", "{}"], {
        "dict": ["dict({a}, z={s})", "{a}.copy()", "{a} if {b} else d", "{'in': {a}}"], "list": ["{a}.items()|list",
            "{a}.keys()|list", "{a}.values()|list", "{a}|list", "{a}|items|list", "d|dictsort",
            "d|dictsort(by='value', reverse={b})"],
        "str": ["{a}|tojson", "{a}|string", "{a}|tojson(indent=1)", "'%(b)s' % d", "'{{a}}'.format(a={a})", "{a}|xmlattr"],
            "num": ["{a}|length", "{a}.a|default(3)", "{a}.get('b', {n})|int"],
        "bool": ["'a' in {a}", "{a}.a is defined", "{a} == d", "{a} is mapping", "{a}['zz'] is undefined"]}),
    "num": (["n", "f", "z", "neg", "sm", "lg", "1", "2", "10", "0.1", "255", "1e22", "12345678901234567890", "-3", "2.5",
        "1e-5"], {
        "num": ["{a} + {n}", "{a} - {n}", "{a} * {n}", "{a} / ({n}|abs + 1)", "{a} // ({n}|abs + 0.5)", "{a} % ({n}|abs + 1)",
            "{a}|abs", "{a}|round", "{a}|round(2)", "{a}|round(-1)", "{a}|round(1, 'floor')", "{a}|int", "{a}|float", "-{a}",
                "{a} if {b} else {n}", "({a}|int % 7) ** 2", "[{a}, {n}]|max", "{a}.real"],
        "str": ["{a}|string", "'%.3f' % {a}", "'%e|%g' % ({a}, {a})", "'{{:>12}}'.format({a})",
            "'{{:.2f}}|{{:,}}'.format({a}, {a})", "{a}|tojson", "'%+d' % {a}", "'{{:+.1e}}|{{:010.3f}}'.format({a}, {a})",
            "'{{:g}}|{{:%}}'.format({a}, {a})", "'{{:_}}|{{!r}}'.format({a}, {a})"],
        "bool": ["{a} > {n}", "{a} == {n}", "1 <= {a} < {n}", "{a}|int is odd", "{a} is integer", "{a} is number",
            "{a} is divisibleby 3", "{a} in l"]}),
    "bool": (["t", "true", "false", "nul is none", "missing is defined", "n is number"], {
        "bool": ["not {a}", "{a} and {b}", "{a} or {b}", "{a} == {b}"], "str": ["{a}|string", "{a}|tojson", "{a} ~ {s}"],
            "num": ["{a}|int", "{a} + {n}"], "list": ["[{a}]"]}),
}


class Generator:
    def __init__(self, seed):
        self.r = random.Random(seed)
        self.mostly_right = seed % 4 != 0

    def pick(self, *choices):
        return self.r.choice(choices)

    def typed(self, kind, depth=0):
        """An expression of a kind."""
        r = self.r
        ways = [(name, way) for name, (_, results) in KINDS.items() for way in results.get(kind, [])]
        if depth > 3 or not ways or r.random() < 0.25:
            return r.choice(KINDS[kind][0])
        source, way = r.choice(ways)
        fill = {"{a}": source, "{s}": "str", "{n}": "num", "{l}": "list", "{b}": "bool"}
        for mark, of in fill.items():
            while mark in way:
                way = way.replace(mark, "(" + self.typed(of, depth + 1).replace("{", "\x01").replace("}", "\x02") + ")", 1)
        for mark, choices in (("{i}", ["", "0", "1", "-1", "2", "-3", "7"]), ("{k}", ["-1", "2", "-2", "3"])):
            while mark in way:
                way = way.replace(mark, r.choice(choices if "[" + mark + "]" not in way else choices[1:4]), 1)
        return way.replace("{{", "{").replace("}}", "}").replace("\x01", "{").replace("\x02", "}")

    def atom(self):
        r = self.r
        k = r.randrange(14)
        if k < 6:
            return r.choice(NAMES)
        if k < 8:
            return str(r.choice([0, 1, 2, 3, -1, 7, 10, 255, 12345678901234567890, "0x1F", "1_000", "2.5", "1e3", "1.5e-7",
                "0.1", "3.0", "1e22"]))
        if k < 10:
            return r.choice(["'a'", '"b c"', "'x\\ny'", "'żółw'", "''", "'12'", "' 3.7 '", "'%s'", "'{}'", "'a,b,c'",
                "'\\u00df\\t'", "'Straße ΑΣ'", "'<b>'", "'ǆ ŉ İ'", "'1e3'", "'0x1f'", "'a' 'b'"])
        if k == 10:
            return r.choice(["true", "false", "none", "True", "None"])
        if k == 11:
            return "[" + ", ".join(self.expr(2) for _ in range(r.randrange(4))) + "]"
        if k == 12:
            return "(" + "".join(self.expr(2) + ", " for _ in range(r.randrange(3))) + ")"
        return "{" + ", ".join(
            f"{self.pick(repr('a'), repr('b'), '1', 'none', '1.0', 'true', 's')}: {self.expr(2)}" for _ in range(r.randrange(
            3))) + "}"

    def expr(self, depth=0):
        r = self.r
        if self.mostly_right and r.random() < 0.85:
            return self.typed(r.choice(list(KINDS)), min(depth, 3))
        if depth > 3 or r.random() < 0.15:
            return self.atom()
        k = r.randrange(22)
        a = self.expr(depth + 1)
        if k < 3:
            return f"{self.wrap(a)}|{r.choice(FILTERS)}"
        if k < 6:
            return f"{self.wrap(a)}.{r.choice(METHODS)}"
        if k < 8:
            return f"{self.wrap(a)} is {self.pick('', 'not ')}{r.choice(TESTS)}"
        b = self.expr(depth + 1)
        if k < 10:
            return f"{self.wrap(a)} {r.choice(['+', '-', '*', '/', '//', '%', '**', '~', '+', '~'])} {self.wrap(b)}"
        if k < 12:
            return f"{self.wrap(a)} {r.choice(['==', '!=', '<', '>', '<=', '>=', 'in', 'not in'])} {self.wrap(b)}" + (
                f" < {self.wrap(self.atom())}" if r.random() < 0.1 else "")
        if k < 14:
            return f"{a} {self.pick('and', 'or')} {b}"
        if k == 14:
            return f"{a} if {b}" + (f" else {self.expr(depth + 1)}" if r.random() < 0.8 else "")
        if k == 15:
            return f"{self.wrap(a)}[{self.index(b)}]"
        if k == 16:
            return f"{self.wrap(a)}[{self.index(b)}]"
        if k == 17:
            return f"{self.pick('not ', '-', '+')}{self.wrap(a)}"
        if k == 18:
            return f"{r.choice(FORMATS)} % {self.wrap(self.pick(a, f'({a}, {b})', 'd'))}"
        if k == 19:
            return f"'{r.choice(BRACES)}{r.choice(['', r.choice(BRACES)])}'.format({a}, {b}, a={self.atom()})"
        if k == 20:
            return f"range({', '.join(str(r.randrange(-5, 9)) for _ in range(r.randrange(1, 4)))})" + self.pick("", "|list",
                "[1]", "[::-1]|list", "|length")
        return self.pick(f"namespace(a={a}).a", f"dict(a={a}, b={b})", "strftime_now('%d %b %Y')", f"dict(d, z={a})",
            f"{self.wrap(a)}|string|length", "joiner('|')()", "cycler(1, 2).next()")

    def index(self, b):
        r = self.r
        if r.random() < 0.5:
            part = lambda: r.choice(["", "0", "1", "-1", "2", "-2", "5", "-9", "n"])
            return f"{part()}:{part()}" + (f":{part()}" if r.random() < 0.5 else "")
        return r.choice(["0", "-1", "1", "'a'", "'role'", "'x'", "5", b])

    @staticmethod
    def wrap(a):
        return a if a.replace("_", "").isalnum() else f"({a})"

    def space(self):
        return self.r.choice(["", "", " ", "\n", "  \n", "\n  ", "x", " y ", "\n\n", "\t", "end\n"])

    def tag(self, text):
        begin, end = self.r.choice(["", "", "", "-", "+"]), self.r.choice(["", "", "", "-", "+"])
        return f"{{%{begin} {text} {end}%}}"

    def body(self, depth):
        return "".join(self.space() + self.statement(depth) for _ in range(self.r.randrange(1, 4))) + self.space()

    def statement(self, depth=0):
        r = self.r
        if depth > 3 or r.random() < 0.35:
            return f"{{{{{self.pick('', '-')} {self.expr()} {self.pick('', '-')}}}}}"
        k = r.randrange(15)
        name = r.choice(["x", "i", "m", "s", "n", "ns"])
        if k < 3:
            other = self.tag("elif " + self.expr()) + self.body(depth + 1) if r.random() < 0.3 else ""
            other += self.tag("else") + self.body(depth + 1) if r.random() < 0.4 else ""
            return self.tag("if " + self.expr()) + self.body(depth + 1) + other + self.tag("endif")
        if k < 6:
            target, over = self.pick(("i", r.choice(["l", "ls", "messages", "u", "e", "range(4)", "d", self.atom(),
                self.expr()])), ("k, v", "d.items()"), ("k, v", "d|dictsort"), ("m", "messages"))
            condition = f" if {self.expr(2)}" if r.random() < 0.25 else ""
            extra = r.choice(["", "", "{{ loop.index }}", "{{ loop.last }}", "{{ loop.revindex }}", "{{ loop.previtem }}",
                "{{ loop.nextitem }}", "{{ loop.length }}{{ loop.first }}",
                              "{{ loop.cycle('a', 'b') }}", "{{ loop.changed(i) }}", "{{ loop.depth }}", "{% break %}",
                                  "{% if loop.index > 1 %}{% break %}{% endif %}", "{% if i %}{% continue %}{% endif %}"])
            other = self.tag("else") + self.body(depth + 1) if r.random() < 0.2 else ""
            return self.tag(f"for {target} in {over}{condition}") + extra + self.body(depth + 1) + other + self.tag("endfor")
        if k < 9:
            return self.tag(
                f"set {self.pick(name, name, 'x, i')} = {self.pick(self.expr(), self.expr(), f'{self.atom()}, {self.atom()}')}")
        if k == 9:
            return self.tag("set ns = namespace(a=1, b=" + self.expr() + ")") + self.tag("set ns.a = " + self.expr(
                )) + "{{ ns.a }}{{ ns.b }}"
        if k == 10:
            return self.tag(f"set {name}{self.pick('', ' | upper', ' | trim')}") + self.body(depth + 1) + self.tag("endset")
        if k == 11:
            arguments = self.pick("", "x", "x, y=1", "x='a', y=n")
            use = self.pick("{{ g(1) }}", "{{ g(s, y=2) }}", "{{ g() }}", "{% call g(1) %}c{{ x }}{% endcall %}",
                "{{ g(1, 2, 3) }}", "{{ g(z=1) }}", "{% call(y) g(2) %}{{ y }}{% endcall %}")
            inside = self.pick("", "{{ caller() }}", "{{ varargs }}{{ kwargs }}", "{{ caller(3) if caller }}", "{{ y }}")
            return self.tag(f"macro g({arguments})") + inside + self.body(depth + 2) + self.tag("endmacro") + use
        if k == 12:
            return self.tag("filter " + self.pick("upper", "trim", "indent(2)",
                "replace('a', 'b')|upper")) + self.body(depth + 1) + self.tag("endfilter")
        if k == 13:
            return self.tag(f"with {name} = {self.expr()}") + self.body(depth + 1) + self.tag("endwith")
        return self.pick("{# c #}", "{#- c -#}", "{% raw %} {{ x }} {% endraw %}", "{%- raw -%} {% x {%- endraw -%}",
            "{% generation %}" + self.body(depth + 1) + "{% endgeneration %}",
                         "{% for m in messages recursive %}{{ m.role }}{{ loop([m.n]) if m.n and loop.depth < 3 }}{% endfor %}",
                             "{% print 1, 2 %}")

    def template(self):
        return self.body(0) if self.r.random() < 0.7 else f"{{{{ {self.expr()} }}}}"


class Generation(Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return nodes.CallBlock(self.call_method("_pass"), [], [], body).set_lineno(line)

    def _pass(self, caller):
        return caller()


def environment():
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, "jinja2.ext.loopcontrols"])

    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda f: datetime.datetime(2026, 1, 2, 3, 4, 5).strftime(f)
    return env


class Plain(CodeGenerator):
    """Jinja2 works constant expressions out beforehand, by other rules than when it renders: here it does not."""

    def _output_child_to_const(self, node, frame, finalize):
        if not isinstance(node, nodes.TemplateData):
            raise nodes.Impossible()
        return super()._output_child_to_const(node, frame, finalize)


def reference(template, folding=True):
    try:
        env = environment()
        if not folding:
            env.optimized = False
            env.code_generator_class = Plain
        text = env.from_string(template).render(**json.loads(json.dumps(CONTEXT)))
        text.encode()
        return {"text": text}
    except RecursionError:
        return {"skip": "recursion"}
    except BaseException as error:
        return {"error": str(error), "type": type(error).__name__}


# What the two cannot have in common, or what docs/chat-templates.md says that we refuse.
def excused(theirs, ours):
    if "skip" in theirs:
        return True
    text = theirs.get("text", "") + theirs.get("error", "")
    if " at 0x" in text or "built-in method" in text or "<function " in text or "<bound method" in text or "<class " in text:
        return True
    error = ours.get("error", "")
    return ours.get("type") == "limit" or "not supported" in error or "127 bits" in error or "complex" in text or (text.count(
        "j)") and "error" in ours)


def agree(theirs, ours):
    return ours.get("text") == theirs["text"] if "text" in theirs else "error" in ours


def check(seeds, program):
    templates = [Generator(seed).template() for seed in seeds]
    requests = "".join(json.dumps({"template": t, "context": CONTEXT}) + "\n" for t in templates)
    run = subprocess.run([program], input=requests, capture_output=True, text=True)
    answers = run.stdout.splitlines()
    if run.returncode or len(answers) != len(templates):
        return len(templates), 0, 0, [(seeds[min(len(answers), len(seeds) - 1)], templates[min(len(answers),
            len(templates) - 1)], {}, {"crash": run.stderr[-500:]})]
    different, rendered, passed_over = [], 0, 0
    for seed, template, line in zip(seeds, templates, answers):
        ours, theirs = json.loads(line), reference(template)
        rendered += "text" in theirs
        if not agree(theirs, ours) and (excused(theirs, ours) or agree(reference(template, folding=False), ours)):
            passed_over += 1
        elif not agree(theirs, ours):
            different.append((seed, template, theirs, ours))
    return len(templates), rendered, passed_over, different


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--count", type=int, default=3000)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--show", type=int, default=20)
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.count)
    total = rendered = passed_over = 0
    different = []
    with concurrent.futures.ProcessPoolExecutor(2) as pool:
        chunks = [seeds[i:i + 500] for i in range(0, len(seeds), 500)]
        for count, texts, excuses, found in pool.map(check, chunks, [options.program] * len(chunks)):
            total, rendered, passed_over = total + count, rendered + texts, passed_over + excuses
            different += found
    for seed, template, theirs, ours in different[:options.show]:
        print(f"seed {seed}: {template!r}\n  jinja2: {theirs!r}\n  ours:   {ours!r}")
    print(f"{total} templates, {rendered} of them rendered, {passed_over} passed over, {len(different)} different")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
