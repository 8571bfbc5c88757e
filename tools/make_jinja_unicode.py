"""Writes src/text/jinja_unicode_tables.inc: what Python's str methods need to know of each character.

The facts are those of the Unicode version of the Python that runs this (3.11: Unicode 14), since Python's str is the
behaviour that templates are written for. Run: python3 tools/make_jinja_unicode.py > src/text/jinja_unicode_tables.inc
"""

import sys
import textwrap
import unicodedata

LAST = 0x10FFFF
# The bits of CharProperty in jinja_unicode.h.
ALPHA, DECIMAL, DIGIT, NUMERIC, UPPER, LOWER, TITLE, PRINTABLE, CASED, IGNORABLE, START, CONTINUE = (
    1 << i for i in range(12)
)


def cased(char):
    """Python has no direct question for Cased; title() lowers what follows a cased character."""
    return (char + "a").title().endswith("a")


def ignorable(char):
    """The final sigma rule looks through case-ignorable characters for a cased one."""
    return ("A" + char + "\u03a3").lower().endswith("\u03c2") and (char + "\u03a3").lower().endswith("\u03c3")


def properties(code):
    char = chr(code)
    flags = 0
    for bit, yes in (
        (ALPHA, char.isalpha()),
        (DECIMAL, char.isdecimal()),
        (DIGIT, char.isdigit()),
        (NUMERIC, char.isnumeric()),
        (UPPER, char.isupper()),
        (LOWER, char.islower()),
        (TITLE, unicodedata.category(char) == "Lt"),
        (PRINTABLE, char.isprintable()),
        (CASED, cased(char)),
        (IGNORABLE, ignorable(char)),
        (START, char.isidentifier()),
        (CONTINUE, ("a" + char).isidentifier()),
    ):
        flags |= bit if yes else 0
    return flags


def rows(texts):
    print(
        textwrap.fill(
            " ".join(text.replace(" ", "") for text in texts), 118, initial_indent="  ", subsequent_indent="  "
        )
    )


def property_table():
    ranges = []
    for code in range(LAST + 1):
        if 0xD800 <= code <= 0xDFFF:
            continue
        flags = properties(code)
        if ranges and ranges[-1][1] == flags:
            continue
        ranges.append((code, flags))
    print("// {first code point, CharProperty bits}: holds up to the next row.")
    print("constexpr PropertyRange kProperties[] = {")
    rows(f"{{{first:#x}, {flags:#x}}}," for first, flags in ranges)
    print("};")


def case_table(name, mapping):
    simple, special = [], []
    for code in range(LAST + 1):
        if 0xD800 <= code <= 0xDFFF:
            continue
        mapped = mapping(chr(code))
        if mapped == chr(code):
            continue
        if len(mapped) > 1:
            special.append((code, [ord(c) for c in mapped]))
            continue
        delta = ord(mapped) - code
        for stride in (1, 2):
            if (
                simple
                and simple[-1][2] == delta
                and code - simple[-1][1] == stride
                and simple[-1][3] in (0, stride)
            ):
                simple[-1][1], simple[-1][3] = code, stride
                break
        else:
            simple.append([code, code, delta, 0])
    print(f"// {{first, last, added to it, step}}.\nconstexpr CaseRange k{name}Case[] = {{")
    rows(f"{{{first:#x}, {last:#x}, {delta}, {max(stride, 1)}}}," for first, last, delta, stride in simple)
    print("};")
    print(f"// One character to several.\nconstexpr CaseSpecial k{name}Special[] = {{")
    if not special:
        special = [(0, [0])]
    rows("{%#x, {%s}}," % (code, ", ".join(f"{c:#x}" for c in to)) for code, to in special)
    print("};")


def main():
    print(f"// Made by tools/make_jinja_unicode.py with Unicode {unicodedata.unidata_version}; do not edit.")
    property_table()
    case_table("Upper", str.upper)
    case_table("Lower", lambda c: "i\u0307" if c == "\u0130" else c.lower())
    case_table("Title", str.title)


if __name__ == "__main__":
    sys.exit(main())
