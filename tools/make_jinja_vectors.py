"""Writes src/text/testdata/jinja_vectors.jsonl: small templates and what jinja2 makes of them.

Each line of src/text/testdata/jinja_cases.txt is a template as a Python string literal, optionally followed by
" with " and a Python dict of variables; "# NAME" begins a group. Run: python3 tools/make_jinja_vectors.py
"""

import ast
import json
from pathlib import Path

from jinja_reference import render

DATA = Path(__file__).resolve().parent.parent / "src" / "text" / "testdata"


def cases():
    group = ""
    for number, line in enumerate((DATA / "jinja_cases.txt").read_text(encoding="utf-8").split("\n"), 1):
        if line.startswith("# "):
            group = line[2:]
        elif line:
            template, _, variables = line.partition(" with {")
            try:
                yield group, ast.literal_eval(template), ast.literal_eval("{" + variables) if variables else {}
            except (SyntaxError, ValueError) as e:
                raise SystemExit(f"jinja_cases.txt line {number}: {e}")


def main():
    count = 0
    with open(DATA / "jinja_vectors.jsonl", "w", encoding="utf-8") as out:
        for group, template, variables in cases():
            result = render(template, variables)
            record = {"group": group, "template": template}
            if variables:
                record["variables"] = variables
            record |= {"text": result} if isinstance(result, str) else {"error": result["error"]}
            if isinstance(result, dict) and result["error"] == "raise":
                record["message"] = result["message"]
            out.write(json.dumps(record) + "\n")
            count += 1
    print(count, "vectors")


if __name__ == "__main__":
    main()
