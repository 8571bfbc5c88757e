"""Renders random small templates with jinja2 and with ours (the program jinja_lines) and prints what differs.

python3 tools/compare_jinja.py --program build/release/src/text/jinja_lines --count 20000 --seed 1
Exit status 1 when something differs. Left out, because ours refuses it on purpose: what prints as a memory address,
integers past 64 bits, what the reference computes at compile time from constants alone in another way than at run time.
"""
import argparse
import json
import random
import subprocess
import sys
import warnings

from jinja_reference import render

VARIABLES = {
    "s": "Hello, World", "e": "", "u": "Zürich é 日本 😀\n ", "w": "  a\tb \n c  ", "q": "it's \"q\" <b>&\\", "t": "<think>\nhm\n</think>\n\nok",
    "i": 3, "z": 0, "g": -7, "f": 2.5, "h": -0.5, "y": True, "x": False, "o": None,
    "l": [3, 1, 2], "k": ["b", "A", "c", "a"], "v": [], "mixed": [1, "a", None, 2.5, True, [1], {"a": 1}],
    "d": {"a": 1, "b": "two", "c": [1, 2]}, "p": {}, "n": {"x": {"y": {"z": "deep"}}, "items": "shadow"},
    "msgs": [{"role": "system", "content": "Be terse."}, {"role": "user", "content": "Hi <|im_end|>"},
             {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1, "b": [True]}}}]}],
}
NAMES = list(VARIABLES) + ["missing", "ns", "m1"]
ATTRIBUTES = ["a", "b", "x", "y", "role", "content", "items", "nope", "function", "upper"]
STRINGS = ["", "a", ", ", "b", "-", "\\n", "role", "content", "user", "é", "l", " ", "</think>", "<", "%s", "{}", "x y", "1", "2.5", "A"]
FILTERS = {
    "abs": 0, "capitalize": 0, "center": "n", "count": 0, "default": "a", "dictsort": 0, "escape": 0, "first": 0, "float": 0, "forceescape": 0,
    "indent": "n", "int": 0, "items": 0, "join": "s", "last": 0, "length": 0, "list": 0, "lower": 0, "max": 0, "min": 0, "replace": "ss",
    "reverse": 0, "round": 0, "safe": 0, "sort": 0, "string": 0, "sum": 0, "title": 0, "tojson": 0, "trim": 0, "unique": 0, "upper": 0,
    "wordcount": 0, "map('upper')|list": 0, "map('string')|join('-')": 0, "map(attribute='role')|list": 0, "selectattr('role')|list": 0,
    "select('string')|list": 0, "reject('none')|list": 0, "select|list": 0, "batch(2)|list": 0, "slice(2)|list": 0, "tojson(indent=2)": 0,
    "tojson(sort_keys=true)": 0, "tojson(ensure_ascii=true)": 0, "sort(reverse=true)": 0, "sort(case_sensitive=true)": 0, "truncate(5)": 0,
    "truncate(7, true, '..', 0)": 0, "indent(2, true)": 0, "indent('> ', blank=true)": 0, "default('d', true)": 0, "unique|list": 0,
    "reverse|list": 0, "items|list": 0, "groupby('role')|list": 0, "round(1)": 0, "round(0, 'floor')": 0, "int(5)": 0, "trim('a ')": 0,
    "attr('a')": 0, "dictsort(by='value')": 0, "map('length')|list": 0, "rejectattr('content', 'none')|list": 0, "join(attribute='role')": 0,
}
TESTS = ["defined", "undefined", "none", "string", "number", "mapping", "sequence", "iterable", "integer", "float", "boolean", "true", "false",
         "odd", "even", "lower", "upper", "callable", "escaped", "divisibleby(2)", "eq(1)", "in([1, 'a'])", "sameas(none)", "gt(1)", "ne('a')"]
METHODS = ["upper()", "lower()", "title()", "capitalize()", "swapcase()", "strip()", "lstrip()", "rstrip()", "split()", "split(',')", "split(' ', 1)",
           "rsplit(' ', 1)", "splitlines()", "splitlines(true)", "strip('a ')", "replace('a', 'X')", "replace('', '.')", "startswith('a')", "endswith('d')",
           "find('l')", "rfind('l')", "count('l')", "index('a')", "partition(' ')", "rpartition(' ')", "isdigit()", "isalpha()", "isupper()", "islower()",
           "istitle()", "isspace()", "isalnum()", "isprintable()", "center(20, '*')", "ljust(9, '.')", "rjust(15)", "zfill(9)", "expandtabs(4)",
           "join(k)", "join(['a', 'b'])", "format(1, 'a')", "removeprefix('H')", "removesuffix('d')", "items()|list", "keys()|list", "values()|list",
           "get('a')", "get('zz', 'dflt')", "copy()", "find('l', 3)", "count('l', 2, -1)", "startswith(('a', 'H'))", "lstrip('\\n')", "append(1)", "pop()"]


class Generator:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def pick(self, *choices):
        return self.random.choice(choices)()

    def string(self):
        return "'" + self.random.choice(STRINGS) + "'"

    def atom(self):
        return self.pick(lambda: self.random.choice(NAMES), lambda: self.random.choice(NAMES), lambda: self.random.choice(NAMES), self.string,
                         lambda: self.random.choice(["0", "1", "2", "-1", "7", "2.5", "1e3", "none", "true", "false"]))

    def small(self):
        return self.random.choice(["0", "1", "2", "-1", "-2", "3", "9", "", "i"])

    def expression(self, depth):
        if depth == 0:
            return self.atom()
        sub = lambda: self.expression(depth - 1)
        operand = lambda: "(" + sub() + ")" if self.random.random() < 0.6 else sub()
        return self.pick(
            self.atom,
            lambda: f"{operand()} {self.random.choice(['+', '-', '*', '/', '//', '%', '~', '+', '~'])} {operand()}",
            lambda: f"{operand()} {self.random.choice(['==', '!=', '<', '<=', '>', '>=', 'in', 'not in', 'and', 'or'])} {operand()}",
            lambda: f"{operand()} < {operand()} <= {operand()}",
            lambda: f"{self.random.choice(['not ', '-', '+'])}{operand()}",
            lambda: f"({sub()} if {sub()} else {sub()})",
            lambda: f"({sub()} if {sub()})",
            self.lookup, self.lookup, self.lookup,
            lambda: f"{operand()}{self.filter(depth)}", lambda: f"{operand()}{self.filter(depth)}", lambda: f"({sub()}){self.filter(depth)}{self.filter(depth)}",
            lambda: f"{operand()} is {self.random.choice(['', 'not '])}{self.random.choice(TESTS)}",
            lambda: f"{self.random.choice(NAMES)}.{self.random.choice(METHODS)}", lambda: f"({sub()}).{self.random.choice(METHODS)}",
            lambda: "[" + ", ".join(sub() for _ in range(self.random.randrange(4))) + "]",
            lambda: "(" + ", ".join(sub() for _ in range(self.random.randrange(3))) + ",)" if self.random.random() < 0.8 else "()",
            lambda: "{" + ", ".join(f"{self.string()}: {sub()}" for _ in range(self.random.randrange(3))) + "}",
            lambda: f"m1({', '.join(sub() for _ in range(self.random.randrange(3)))})",
            lambda: f"range({self.random.choice(['3', '1, 4', '5, 0, -2', 'i'])})",
            lambda: f"'{self.random.choice(['%s', '%d', '%5s|', '%r', '%.1f', '%s-%s', '%%'])}' % {operand()}",
            lambda: f"'{self.random.choice(['{}', '{:>6}|', '{!r}', '{0}{0}', '{x}', '{:.1f}', '{:d}'])}'.format({sub()}{self.random.choice(['', ', x=1'])})",
            lambda: f"loop.{self.random.choice(['index', 'index0', 'first', 'last', 'length', 'revindex', 'previtem', 'nextitem', 'depth', 'changed(1)', 'cycle(1, 2)'])}",
            lambda: f"{self.random.choice(['dict', 'namespace'])}(a={sub()}, b=1).a",
        )

    def lookup(self):
        base = self.random.choice(NAMES)
        for _ in range(self.random.randrange(1, 3)):
            base += self.pick(lambda: "." + self.random.choice(ATTRIBUTES), lambda: f"[{self.string()}]", lambda: f"[{self.small() or '0'}]",
                              lambda: f"[{self.small()}:{self.small()}]", lambda: f"[{self.small()}:{self.small()}:{self.random.choice(['1', '2', '-1', '-2', ''])}]")
        return base

    def filter(self, depth):
        name = self.random.choice(list(FILTERS))
        shape = FILTERS[name]
        if not shape:
            return "|" + name
        arguments = [self.string() if kind == "s" else self.random.choice(["0", "1", "3", "12"]) if kind == "n" else self.expression(0) for kind in shape]
        return f"|{name}({', '.join(arguments)})"

    def space(self):
        return "".join(self.random.choice([" ", "\n", "\t", "x", "", "", "\n\n", "é"]) for _ in range(self.random.randrange(4)))

    def tag(self, content):
        left, right = self.random.choice(["", "", "", "-", "+"]), self.random.choice(["", "", "", "-", "+"])
        return "{%" + left + " " + content + " " + right + "%}"

    def body(self, depth):
        return "".join(self.space() + self.statement(depth) for _ in range(self.random.randrange(1, 4))) + self.space()

    def statement(self, depth):
        value = lambda: self.expression(self.random.choice([0, 0, 0, 1, 1, 2]))
        output = lambda: "{{" + self.random.choice(["", "-"]) + " " + value() + " " + self.random.choice(["", "-"]) + "}}"
        if depth == 0:
            return output()
        inner = lambda: self.body(depth - 1)
        name = lambda: self.random.choice(["i", "s", "a", "b", "q", "l"])
        return self.pick(
            output, output, output,
            lambda: self.tag("if " + value()) + inner() + (self.tag("elif " + value()) + inner() if self.random.random() < 0.3 else "") +
            (self.tag("else") + inner() if self.random.random() < 0.5 else "") + self.tag("endif"),
            lambda: self.tag(f"for {self.random.choice(['i', 'a', 'a, b'])} in {value()}{self.random.choice(['', '', ' if ' + value()])}") + inner() +
            (self.tag("if " + value()) + self.tag(self.random.choice(["break", "continue"])) + self.tag("endif") if self.random.random() < 0.3 else "") +
            (self.tag("else") + inner() if self.random.random() < 0.3 else "") + self.tag("endfor"),
            lambda: self.tag(f"set {name()} = {value()}"),
            lambda: self.tag(f"set ns.{name()} = {value()}"),
            lambda: self.tag(f"set {name()}{self.random.choice(['', ' | upper', ' | trim'])}") + inner() + self.tag("endset"),
            lambda: self.tag(f"with {name()} = {value()}") + inner() + self.tag("endwith"),
            lambda: self.tag(f"filter {self.random.choice(['upper', 'trim', 'indent(2)', 'length'])}") + inner() + self.tag("endfilter"),
            lambda: self.tag(f"macro m1(a, b={value()})") + inner() + self.tag("endmacro"),
            lambda: self.tag("call m1(1)") + inner() + self.tag("endcall"),
            lambda: self.tag("generation") + inner() + self.tag("endgeneration"),
            lambda: "{#" + self.random.choice(["", "-", "+"]) + " note " + self.random.choice(["", "-", "+"]) + "#}",
            lambda: self.tag("raw").replace("+%}", "%}") + " {{ raw }} " + self.tag("endraw"),
        )

    def template(self):
        if self.random.random() < 0.6:
            return "{% macro m1(a, b='d') %}[{{ a }}{{ b }}]{% endmacro %}{{ " + self.expression(self.random.randrange(1, 4)) + " }}"
        return "{% set ns = namespace(a=1) %}{% macro m1(a, b='d') %}[{{ a }}{{ b }}]{% endmacro %}" + self.body(2)


def excused(reference, ours):
    if isinstance(reference, str) and (" at 0x" in reference or "<LoopContext" in reference or "<class " in reference or "<jinja2." in reference):
        return True
    error = ours.get("error", "")
    return ours.get("id") == "E-TMPL-004" or any(text in error for text in ("64 bits", "not supported", "cannot be printed"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--count", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=20)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    sys.setrecursionlimit(5000)
    generator = Generator(args.seed)
    counts = {"text": 0, "error": 0, "excused": 0, "different": 0}
    with subprocess.Popen([args.program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        for _ in range(args.count):
            template = generator.template()
            program.stdin.write(json.dumps({"template": template, "variables": VARIABLES}) + "\n")
            program.stdin.flush()
            ours = json.loads(program.stdout.readline())
            reference = render(template, VARIABLES)
            if isinstance(reference, str):
                same = ours["ok"] and ours["text"] == reference
            else:
                same = not ours["ok"] and (ours["id"] == "E-TMPL-001") == (reference["error"] == "syntax")
            if same:
                counts["text" if ours["ok"] else "error"] += 1
            elif excused(reference, ours):
                counts["excused"] += 1
            else:
                counts["different"] += 1
                if counts["different"] <= args.show:
                    print(f"--- {template!r}\n  reference {reference!r}\n  ours      {ours.get('text', (ours.get('id'), ours.get('error'), ours.get('where')))!r}")
        program.stdin.close()
    print(", ".join(f"{count} {name}" for name, count in counts.items()))
    return 1 if counts["different"] else 0


if __name__ == "__main__":
    sys.exit(main())
