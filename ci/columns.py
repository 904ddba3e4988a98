"""Lists the columns of each schema that a page names, for the book.

A line `<!-- columns: SCHEMA -->` of the page on standard input is followed by the list of that JSON Schema:
the columns of CSV and Parquet, as crates/study/src/columns.rs makes them. A column that an earlier list
describes has its name and type alone; the four columns of an estimate are one line.
"""

import json
import sys

ESTIMATE = {"value", "low", "high", "basis"}
WORDS = {"string": "text", "boolean": "boolean", "object": "JSON", "array": "JSON"}


def columns(schema, before=()):
    for name, of in schema["properties"].items():
        path = (*before, name)
        inner = of.get("properties", {})
        column = "_".join(path)
        if ESTIMATE == inner.keys():
            yield f"`{column}_*` (estimate)", of.get("description", "")
        elif inner:
            yield from columns(of, path)
        else:
            types = of.get("type", "object")
            kinds = [t for t in ([types] if isinstance(types, str) else types) if t != "null"]
            word = WORDS.get(kinds[0], "") if len(kinds) == 1 else "JSON"
            values = ", ".join(v for v in of.get("enum", []) if v)
            kind = f" ({word}{': ' if values else ''}{values})" if word else ""
            yield f"`{column}`{kind}", of.get("description", "")


described = set()
for line in sys.stdin:
    print(line, end="")
    if not line.startswith("<!-- columns: "):
        continue
    print()
    with open(line.split()[2]) as file:
        for column in columns(json.load(file)):
            name, about = column
            print(f"- {name}: {about}" if about and column not in described else f"- {name}")
            described.add(column)
