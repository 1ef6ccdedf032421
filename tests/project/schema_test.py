"""docs/sdx.schema.json and src/project/config_keys.h list the same keys, and documented project files fit the schema:
schema_test.py SOURCE_DIR

The fit is checked where the modules jsonschema and yaml are installed.
"""

import json
import re
import sys
from pathlib import Path

SECTIONS = {
    "Project": [], "Model": ["properties", "model", "oneOf", 1], "Input": ["$defs", "input"], "Output": ["$defs", "output"],
    "Gpu": ["properties", "runtime", "properties", "gpu"],
    "Serving": ["properties", "serving"], "Preprocessing": ["$defs", "preprocessing"],
    "Postprocessing": ["$defs", "postprocessing"],
}


def keys_in_code(source):
    text = (source / "src/project/config_keys.h").read_text()
    found = re.findall(r"\bk([A-Z]\w+)\{(.*?)\};", text, re.S)
    return {name: re.findall(r'"([^"]+)"', body) for name, body in found}


def keys_in_schema(schema, path):
    for step in path:
        schema = schema[step]
    assert schema["additionalProperties"] is False, f"{path} allows unknown keys"
    return list(schema["properties"])


def examples(source):
    """Project files of the documentation."""
    for page in [source / "README.md", *sorted((source / "docs").glob("*.md"))]:
        for block in re.findall(r"```yaml\n(.*?)```", page.read_text(), re.S):
            if re.search(r"^name:", block, re.M):
                yield f"{page.name}", block


def main():
    source = Path(sys.argv[1])
    schema = json.loads((source / "docs/sdx.schema.json").read_text())
    code = keys_in_code(source)
    wrong = 0
    own = code.pop("RuntimeOwn")  # the other keys of the section are written from the table of session options
    if missing := set(own) - set(keys_in_schema(schema, ["properties", "runtime"])):
        print(f"FAIL Runtime: not in the schema: {sorted(missing)}")
        wrong += 1
    if sorted(code) != sorted(SECTIONS):
        print(f"FAIL sections: {sorted(code)}")
        wrong += 1
    for name, path in SECTIONS.items():
        difference = set(code.get(name, [])) ^ set(keys_in_schema(schema, path))
        if difference:
            print(f"FAIL {name}: in one of the two only: {sorted(difference)}")
            wrong += 1
    try:
        import jsonschema
        import yaml
    except ImportError:
        print("jsonschema or yaml is not installed: examples are not checked against the schema")
    else:
        validator = jsonschema.Draft202012Validator(schema)
        count = 0
        for where, text in examples(source):
            count += 1
            for error in validator.iter_errors(yaml.safe_load(text)):
                print(f"FAIL {where}: {error.json_path}: {error.message}")
                wrong += 1
        for bad in ({"name": "x"}, {"name": "x", "model": "m", "runtim": {}}, {"name": "x", "model": "m", "runtime": {"threads": -1}}):
            if validator.is_valid(bad):
                print(f"FAIL accepted: {bad}")
                wrong += 1
        print(f"{count} examples")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
