#!/usr/bin/env python3
"""Writes src/terminal/width_table.inc: how many columns of a terminal a character takes, as ranges.

    pip install --no-deps --target U17 unicodedata2==17.0.0
    tools/make_width_table.py --unicode U17 > src/terminal/width_table.inc

Two columns: East_Asian_Width W and F (which holds emoji that are shown as pictures). None: marks that do not space
(Mn, Me), format characters (Cf) but the soft hyphen, and the vowels and finals of Hangul syllables. All others: one.
"""
import argparse
import sys
from pathlib import Path


def ranges(of):
    out = []
    for c in range(0x110000):
        if not of(c):
            continue
        if out and out[-1][1] == c - 1:
            out[-1][1] = c
        else:
            out.append([c, c])
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--unicode", type=Path, required=True)
    sys.path.insert(0, str(parser.parse_args().unicode))
    import unicodedata2 as u
    assert u.unidata_version == "17.0.0", u.unidata_version

    def none(c):
        hangul = 0x1160 <= c <= 0x11FF or 0xD7B0 <= c <= 0xD7FB
        return hangul or c == 0x200B or (u.category(chr(c)) in ("Mn", "Me", "Cf") and c != 0xAD)

    print("// Made by tools/make_width_table.py from Unicode 17.0.0: do not edit. First and last, both inside.")
    for name, of in (("kNoColumns", none),
                     ("kTwoColumns", lambda c: u.east_asian_width(chr(c)) in "WF" and not none(c))):
        found = ranges(of)
        print(f"constexpr auto {name} = std::to_array<WidthRange>({{")
        for i in range(0, len(found), 5):
            print("  " + " ".join(f"{{0x{a:X}, 0x{b:X}}}," for a, b in found[i:i + 5]))
        print("});")


if __name__ == "__main__":
    main()
