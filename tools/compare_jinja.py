"""Renders random small templates with jinja2 and with ours (the program jinja_lines) and prints what differs.

    python3 tools/compare_jinja.py --program build/release/src/text/jinja_lines --count 20000 --seed 1

Exit status 1 when something differs, 77 when jinja2 is not there. Left out, because ours refuses it on purpose: what
prints as a memory address, integers past 64 bits, and what takes more than the budget of a render.
"""
import argparse
import json
import random
import subprocess
import sys
import warnings

try:
    from jinja_reference import render
except ImportError:
    print("skipped: python3-jinja2 is not installed")
    sys.exit(77)

CALL = {"function": {"name": "f", "arguments": {"a": 1, "b": [True]}}}
VARIABLES = {
    "s": "Hello, World", "e": "", "u": "Zürich é 日本 😀\n ", "w": "  a\tb \n c  ", "q": "it's \"q\" <b>&\\",
    "t": "<think>\nhm\n</think>\n\nok",
    "i": 3, "z": 0, "g": -7, "f": 2.5, "h": -0.5, "y": True, "x": False, "o": None,
    "l": [3, 1, 2], "k": ["b", "A", "c", "a"], "v": [], "mixed": [1, "a", None, 2.5, True, [1], {"a": 1}],
    "d": {"a": 1, "b": "two", "c": [1, 2]}, "p": {}, "n": {"x": {"y": {"z": "deep"}}, "items": "shadow"},
    "msgs": [{"role": "system", "content": "Be terse."}, {"role": "user", "content": "Hi <|im_end|>"},
             {"role": "assistant", "content": None, "tool_calls": [CALL]}],
}
NAMES = list(VARIABLES) + ["missing", "ns", "m1"]
ATTRIBUTES = ["a", "b", "x", "y", "role", "content", "items", "nope", "function", "upper"]
STRINGS = ["", "a", ", ", "b", "-", "\\n", "role", "content", "user", "é", "l", " ", "</think>", "<", "%s", "{}",
           "x y", "1", "2.5", "A"]
# Arguments: s a string, n a number, a any atom.
FILTERS_WITH_ARGUMENTS = {"center": "n", "default": "a", "indent": "n", "join": "s", "replace": "ss"}
FILTERS = """
abs capitalize count dictsort escape first float forceescape int items last length list lower max min reverse round
safe sort string sum title tojson trim unique upper wordcount map('upper')|list map('string')|join('-')
map(attribute='role')|list selectattr('role')|list select('string')|list reject('none')|list select|list batch(2)|list
slice(2)|list tojson(indent=2) tojson(sort_keys=true) tojson(ensure_ascii=true) sort(reverse=true)
sort(case_sensitive=true) truncate(5) truncate(7,true,'..',0) indent(2,true) indent('>',blank=true) default('d',true)
unique|list reverse|list items|list groupby('role')|list round(1) round(0,'floor') int(5) trim('a') attr('a')
dictsort(by='value') map('length')|list rejectattr('content','none')|list join(attribute='role')
""".split() + list(FILTERS_WITH_ARGUMENTS)
TESTS = """
defined undefined none string number mapping sequence iterable integer float boolean true false odd even lower upper
callable escaped divisibleby(2) eq(1) in([1,'a']) sameas(none) gt(1) ne('a')
""".split()
METHODS = ["split(' ', 1)", "rsplit(' ', 1)", "strip('a ')", "partition(' ')", "rpartition(' ')"] + """
upper() lower() title() capitalize() swapcase() strip() lstrip() rstrip() split() split(',') splitlines()
splitlines(true) replace('a','X') replace('','.') startswith('a') endswith('d') find('l') rfind('l') count('l')
index('a') isdigit() isalpha() isupper() islower() istitle() isspace() isalnum() isprintable() center(20,'*')
ljust(9,'.') rjust(15) zfill(9) expandtabs(4) join(k) join(['a','b']) format(1,'a') removeprefix('H')
removesuffix('d') items()|list keys()|list values()|list get('a') get('zz','dflt') copy() find('l',3) count('l',2,-1)
startswith(('a','H')) lstrip('\\n') append(1)
""".split()
LOOP = "index index0 first last length revindex previtem nextitem depth changed(1) cycle(1,2)".split()
PERCENT = ["%s", "%d", "%5s|", "%r", "%.1f", "%s-%s", "%%"]
BRACES = ["{}", "{:>6}|", "{!r}", "{0}{0}", "{x}", "{:.1f}", "{:d}"]
MACRO = "{% macro m1(a, b='d') %}[{{ a }}{{ b }}]{% endmacro %}"


class Generator:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.one_of = self.random.choice

    def pick(self, *choices):
        return self.one_of(choices)()

    def chance(self, probability):
        return self.random.random() < probability

    def some(self, make, most):
        return [make() for _ in range(self.random.randrange(most))]

    def name(self):
        return self.one_of(NAMES)

    def string(self):
        return "'" + self.one_of(STRINGS) + "'"

    def atom(self):
        literal = lambda: self.one_of(["0", "1", "2", "-1", "7", "2.5", "1e3", "none", "true", "false"])
        return self.pick(self.name, self.name, self.name, self.string, literal)

    def small(self):
        return self.one_of(["0", "1", "2", "-1", "-2", "3", "9", "", "i"])

    def expression(self, depth):
        if depth == 0:
            return self.atom()
        sub = lambda: self.expression(depth - 1)
        operand = lambda: f"({sub()})" if self.chance(0.6) else sub()
        arithmetic = ["+", "-", "*", "/", "//", "%", "~", "+", "~"]
        relations = ["==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or"]
        return self.pick(
            self.atom,
            lambda: f"{operand()} {self.one_of(arithmetic)} {operand()}",
            lambda: f"{operand()} {self.one_of(relations)} {operand()}",
            lambda: f"{operand()} < {operand()} <= {operand()}",
            lambda: f"{self.one_of(['not ', '-', '+'])}{operand()}",
            lambda: f"({sub()} if {sub()} else {sub()})",
            lambda: f"({sub()} if {sub()})",
            self.lookup, self.lookup, self.lookup,
            lambda: operand() + self.filter(), lambda: operand() + self.filter(),
            lambda: f"({sub()}){self.filter()}{self.filter()}",
            lambda: f"{operand()} is {self.one_of(['', 'not '])}{self.one_of(TESTS)}",
            lambda: f"{self.name()}.{self.one_of(METHODS)}",
            lambda: f"({sub()}).{self.one_of(METHODS)}",
            lambda: f"[{', '.join(self.some(sub, 4))}]",
            lambda: f"({sub()}, {', '.join(self.some(sub, 3))})" if self.chance(0.8) else "()",
            lambda: "{" + ", ".join(self.some(lambda: f"{self.string()}: {sub()}", 3)) + "}",
            lambda: f"m1({', '.join(self.some(sub, 3))})",
            lambda: f"range({self.one_of(['3', '1, 4', '5, 0, -2', 'i'])})",
            lambda: f"'{self.one_of(PERCENT)}' % {operand()}",
            lambda: f"'{self.one_of(BRACES)}'.format({sub()}{self.one_of(['', ', x=1'])})",
            lambda: f"loop.{self.one_of(LOOP)}",
            lambda: f"{self.one_of(['dict', 'namespace'])}(a={sub()}, b=1).a",
        )

    def lookup(self):
        base = self.name()
        for _ in range(self.random.randrange(1, 3)):
            base += self.pick(
                lambda: "." + self.one_of(ATTRIBUTES),
                lambda: f"[{self.string()}]",
                lambda: f"[{self.small() or '0'}]",
                lambda: f"[{self.small()}:{self.small()}]",
                lambda: f"[{self.small()}:{self.small()}:{self.one_of(['1', '2', '-1', '-2', ''])}]",
            )
        return base

    def filter(self):
        name = self.one_of(FILTERS)
        make = {"s": self.string, "n": lambda: self.one_of(["0", "1", "3", "12"]), "a": self.atom}
        arguments = [make[kind]() for kind in FILTERS_WITH_ARGUMENTS.get(name, "")]
        return f"|{name}({', '.join(arguments)})" if arguments else f"|{name}"

    def space(self):
        return "".join(self.some(lambda: self.one_of([" ", "\n", "\t", "x", "", "", "\n\n", "é"]), 4))

    def tag(self, content):
        sign = lambda: self.one_of(["", "", "", "-", "+"])
        return "{%" + sign() + " " + content + " " + sign() + "%}"

    def block(self, head, end, inner):
        return self.tag(head) + inner + self.tag(end)

    def output(self):
        return "{{" + self.one_of(["", "-"]) + " " + self.value() + " " + self.one_of(["", "-"]) + "}}"

    def value(self):
        return self.expression(self.one_of([0, 0, 0, 1, 1, 2]))

    def body(self, depth):
        statements = [self.space() + self.statement(depth) for _ in range(self.random.randrange(1, 4))]
        return "".join(statements) + self.space()

    def statement(self, depth):
        if depth == 0:
            return self.output()
        inner = lambda: self.body(depth - 1)
        name = lambda: self.one_of(["i", "s", "a", "b", "q", "l"])
        return self.pick(
            self.output, self.output, self.output,
            lambda: self.if_statement(inner),
            lambda: self.for_statement(inner),
            lambda: self.tag(f"set {name()} = {self.value()}"),
            lambda: self.tag(f"set ns.{name()} = {self.value()}"),
            lambda: self.block(f"set {name()}{self.one_of(['', ' | upper', ' | trim'])}", "endset", inner()),
            lambda: self.block(f"with {name()} = {self.value()}", "endwith", inner()),
            lambda: self.block(f"filter {self.one_of(['upper', 'trim', 'indent(2)', 'length'])}", "endfilter", inner()),
            lambda: self.block(f"macro m1(a, b={self.value()})", "endmacro", inner()),
            lambda: self.block("call m1(1)", "endcall", inner()),
            lambda: self.block("generation", "endgeneration", inner()),
            lambda: "{#" + self.one_of(["", "-", "+"]) + " note " + self.one_of(["", "-", "+"]) + "#}",
            lambda: self.tag("raw").replace("+%}", "%}") + " {{ raw }} " + self.tag("endraw"),
        )

    def if_statement(self, inner):
        text = self.tag("if " + self.value()) + inner()
        if self.chance(0.3):
            text += self.tag("elif " + self.value()) + inner()
        if self.chance(0.5):
            text += self.tag("else") + inner()
        return text + self.tag("endif")

    def for_statement(self, inner):
        condition = " if " + self.value() if self.chance(0.3) else ""
        text = self.tag(f"for {self.one_of(['i', 'a', 'a, b'])} in {self.value()}{condition}") + inner()
        if self.chance(0.3):
            text += self.block("if " + self.value(), "endif", self.tag(self.one_of(["break", "continue"])))
        if self.chance(0.3):
            text += self.tag("else") + inner()
        return text + self.tag("endfor")

    def template(self):
        if self.chance(0.6):
            return MACRO + "{{ " + self.expression(self.random.randrange(1, 4)) + " }}"
        return "{% set ns = namespace(a=1) %}" + MACRO + self.body(2)


def excused(reference, ours):
    """Whether ours may refuse what the reference renders, or refuse it for another reason."""
    unprintable = (" at 0x", "<LoopContext", "<class ", "<jinja2.")
    if isinstance(reference, str) and any(text in reference for text in unprintable):
        return True
    limits = ("64 bits", "not supported", "cannot be printed")
    return ours.get("id") == "E-TMPL-004" or any(text in ours.get("error", "") for text in limits)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--count", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=20, help="how many differences to print")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
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
            outcome = "excused" if not same and excused(reference, ours) else "different" if not same else ""
            counts[outcome or ("text" if ours["ok"] else "error")] += 1
            if outcome == "different" and counts["different"] <= args.show:
                got = ours.get("text", (ours.get("id"), ours.get("error"), ours.get("where")))
                print(f"--- {template!r}\n  reference {reference!r}\n  ours      {got!r}")
        program.stdin.close()
    print(", ".join(f"{count} {name}" for name, count in counts.items()))
    return 1 if counts["different"] else 0


if __name__ == "__main__":
    sys.exit(main())
