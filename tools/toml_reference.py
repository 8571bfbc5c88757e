#!/usr/bin/env python3
"""Reads what our reader of inferd.toml accepted, with Python's tomllib, and compares. Called by config_file_test.

stdin: one JSON object a line, {"text": …, "entries": [{"section", "key", "values", "array", "boolean"}, …]}.
Prints every difference, then "N compared"."""

import json
import sys
import tomllib


def same(ours, theirs):
    if isinstance(theirs, bool):
        return ours == ("true" if theirs else "false")
    if isinstance(theirs, int):
        return int(ours) == theirs
    if isinstance(theirs, float):
        return float(ours) == theirs
    return ours == theirs


def entries_of(table, section=""):
    for key, value in table.items():
        if isinstance(value, dict):
            yield (key, ""), []
            yield from entries_of(value, key)
        else:
            yield (section, key), value


def difference(case):
    try:
        theirs = dict(entries_of(tomllib.loads(case["text"])))
    except tomllib.TOMLDecodeError as error:
        return f"refused by tomllib: {error}"
    ours = {(entry["section"], entry["key"]): entry for entry in case["entries"]}
    if ours.keys() != theirs.keys():
        return f"keys {sorted(ours)} against {sorted(theirs)}"
    for name, entry in ours.items():
        value = theirs[name]
        if entry["array"] != (isinstance(value, list) and name[1] != "") or entry["boolean"] != isinstance(value, bool):
            return f"{name}: another kind than {value!r}"
        values = value if isinstance(value, list) else [value]
        if len(values) != len(entry["values"]) or not all(map(same, entry["values"], values)):
            return f"{name}: {entry['values']!r} against {value!r}"
    return None


count = 0
for line in sys.stdin:
    case = json.loads(line)
    count += 1
    if (found := difference(case)) is not None:
        print(f"{case['text']!r}: {found}")
print(f"{count} compared")
