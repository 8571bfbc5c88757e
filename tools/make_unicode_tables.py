#!/usr/bin/env python3
"""Writes src/text/unicode_tables.cpp: what tokenizers need to know of Unicode, as compact tables.

    pip install --no-deps --target U16 unicodedata2==16.0.0
    pip install --no-deps --target U17 unicodedata2==17.0.0
    tools/make_unicode_tables.py --unicode16 U16 --unicode17 U17 > src/text/unicode_tables.cpp

Token ids have to be those of Hugging Face's library, and that library holds three Unicode versions at once (measured
over all code points with tokenizers 0.23.3): general categories and \\s are those of 16.0 (its regex engine), the digit
splitter's numbers are those of 17.0 (its language's standard library), normalisation knows 9.0 only, and its
punctuation splitter 8.0. So this file takes each from its version. Normalisation data of a character never changes once it is assigned (the standard's
stability policy), so 9.0 is newer data less the characters that were assigned later; perl knows their ages.
"""
import argparse
import subprocess
import sys
from pathlib import Path

LAST = 0x10FFFF
SURROGATES = range(0xD800, 0xE000)
# PropList.txt, White_Space; unchanged since Unicode 6.3. U+180E is not in it.
WHITE_SPACE = [*range(0x09, 0x0E), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B),
               0x2028, 0x2029, 0x202F, 0x205F, 0x3000]
HANGUL = range(0xAC00, 0xAC00 + 11172)
JAMO_THAT_COMPOSE = [*range(0x1161, 0x1176), *range(0x11A8, 0x11C3)]
BLOCK = 128
# The bits of src/text/unicode.h.
LETTER, NUMBER, SPACE, DIGIT_SPLIT, MARK, UNSURE = 1, 2, 3, 4, 8, 16
DETAIL = {"Lu": 32, "Lt": 32, "Ll": 64, "Mn": 32, "Mc": 32, "Me": 32,
          "Pc": 64, "Pd": 64, "Ps": 64, "Pe": 64, "Pi": 64, "Pf": 64, "Po": 64,
          "Sm": 96, "Sc": 96, "Sk": 96, "So": 96}
PUNCTUATION_SPLIT = 128
PUNCTUATION_ONCE = [0x166D, 0x111C9]  # were P in 8.0 and are not in 16.0
ASCII_PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"


def load(folder, version):
    sys.modules.pop("unicodedata2", None)
    sys.path.insert(0, str(folder))
    import unicodedata2
    sys.path.pop(0)
    assert unicodedata2.unidata_version == version, (folder, unicodedata2.unidata_version, version)
    return unicodedata2


def assigned_by(version):
    script = r'for (0..0x10FFFF) { print "$_\n" if chr($_) =~ /\p{Present_In: VERSION}/ }'.replace("VERSION", version)
    output = subprocess.run(["perl", "-e", script], check=True, capture_output=True).stdout
    return {int(line) for line in output.split()}


def rows(values, per_line):
    return "\n".join("  " + ",".join(values[i:i + per_line]) + "," for i in range(0, len(values), per_line))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--unicode16", type=Path, required=True)
    parser.add_argument("--unicode17", type=Path, required=True)
    args = parser.parse_args()
    u16, u17 = load(args.unicode16, "16.0.0"), load(args.unicode17, "17.0.0")
    old, older = assigned_by("9.0"), assigned_by("8.0")
    assert 0x1E94A in old - older and 0x0D3B not in old, "these two came with 9.0 and 10.0"

    combining = {c: u17.combining(chr(c)) for c in sorted(old) if u17.combining(chr(c))}
    decompositions, compositions = {}, {}
    for c in sorted(old):
        if c in SURROGATES or c in HANGUL:
            continue
        text = u17.decomposition(chr(c))
        if not text or text.startswith("<"):
            continue
        parts = [int(p, 16) for p in text.split()]
        assert len(parts) <= 2 and all(p in old for p in parts)
        decompositions[c] = (parts + [0])[:2]
        if len(parts) == 2 and u17.normalize("NFC", chr(c)) == chr(c):
            compositions[tuple(parts)] = c
    assert not any(second in decompositions for _, second in decompositions.values()), "only first parts go on"
    seconds = {second for _, second in compositions} | set(JAMO_THAT_COMPOSE)

    flags = bytearray(LAST + 1)
    for c in range(LAST + 1):
        if c in SURROGATES:
            continue
        kind = u16.category(chr(c))[0]
        flags[c] = {"L": LETTER, "N": NUMBER}.get(kind, 0) | DETAIL.get(u16.category(chr(c)), 0)
        if (kind == "P" and c in older) or c in PUNCTUATION_ONCE or chr(c) in ASCII_PUNCTUATION:
            flags[c] |= PUNCTUATION_SPLIT
        if u17.category(chr(c))[0] == "N":
            flags[c] |= DIGIT_SPLIT
        if c in combining:
            flags[c] |= MARK
        if c in seconds or (c in decompositions and u17.normalize("NFC", chr(c)) != chr(c)):
            flags[c] |= UNSURE
    assert sum(1 for flag in flags if flag & PUNCTUATION_SPLIT) == 726, "as measured"
    for c in WHITE_SPACE:
        assert flags[c] & 3 == 0
        flags[c] |= SPACE

    blocks, block_of = {}, []
    for start in range(0, LAST + 1, BLOCK):
        block_of.append(blocks.setdefault(bytes(flags[start:start + BLOCK]), len(blocks)))
    assert len(blocks) <= 65536 and block_of[0] == 0

    ranges = []
    for c, value in combining.items():
        if ranges and ranges[-1][1] == c - 1 and ranges[-1][2] == value:
            ranges[-1][1] = c
        else:
            ranges.append([c, c, value])

    print("// Generated by tools/make_unicode_tables.py from the data of Unicode 16.0 (categories, white space),")
    print("// 17.0 (digit splitter), 9.0 (normalisation) and 8.0 (punctuation splitter); that script says why. Do not")
    print("// edit.")
    print('#include "text/unicode.h"\n\nnamespace inferd::unicode_tables {\n\n// clang-format off')
    print(f"const uint16_t kBlockOf[] = {{\n{rows([str(b) for b in block_of], 30)}\n}};\n")
    print(f"const uint8_t kFlags[{len(blocks) * BLOCK}] = {{")
    print(rows([str(b) for block in blocks for b in block], 40))
    print("};\n")
    print("const CombiningRange kCombiningData[] = {")
    print(rows([f"{{{first:#x},{last:#x},{value}}}" for first, last, value in ranges], 5))
    print("};")
    print("constinit const std::span<const CombiningRange> kCombining = kCombiningData;\n")
    print("const Decomposition kDecompositionData[] = {")
    print(rows([f"{{{c:#x},{a:#x},{b:#x}}}" for c, (a, b) in sorted(decompositions.items())], 4))
    print("};\nconstinit const std::span<const Decomposition> kDecompositions = kDecompositionData;\n")
    print("const Composition kCompositionData[] = {")
    print(rows([f"{{{a:#x},{b:#x},{c:#x}}}" for (a, b), c in sorted(compositions.items())], 4))
    print("};\nconstinit const std::span<const Composition> kCompositions = kCompositionData;")
    print("// clang-format on\n\n}  // namespace inferd::unicode_tables")
    print(len(blocks), "blocks,", len(ranges), "combining ranges,", len(decompositions), "decompositions,",
          len(compositions), "compositions", file=sys.stderr)


if __name__ == "__main__":
    main()
