"""Random texts that grammars let through, against Python's own judges: json, re, and jsonschema where it is installed.

usage: grammar_samples.py SAMPLE_GRAMMARS [--count N] [--seed N]
--count: texts of random schemas and regular expressions; about as many more come from a fixed list.
"""
import argparse
import datetime
import ipaddress
import json
import random
import re
import subprocess
import sys
import uuid

try:
    import jsonschema
    DRAFT = jsonschema.Draft202012Validator
except ImportError:
    jsonschema = None

SCHEMAS = [
    {"type": "object"}, {}, True, {"type": ["string", "null"]}, {"type": "array", "items": {"type": "integer"}, "minItems": 2,
        "maxItems": 4},
    {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0, "maximum": 150}},
        "required": ["name", "age"], "additionalProperties": False},
    {"type": "object", "properties": {"a": {"type": "null"}, "b": {"type": "boolean"}, "c": {"const": [1, {"x": "y\""}]}},
        "required": ["b"]},
    {"type": "object", "properties": {"a": {"type": "integer"}, "ab": {"type": "integer"}, "żółw": {"type": "integer"}},
        "required": ["ab"], "additionalProperties": {"type": "string", "maxLength": 3}},
    {"$ref": "#/$defs/tree", "$defs": {"tree": {"type": "object", "properties": {"v": {"type": "integer"},
        "kids": {"type": "array", "items": {"$ref": "#/$defs/tree"}}}, "required": ["v", "kids"]}}},
    {"type": "object", "properties": {"next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}}, "required": ["next"]},
    {"enum": ["a", 1, None, True, {"k": [1, 2]}, "\u00e9\n"]}, {"type": "string", "enum": ["x", 1]}, {"type": "string",
        "minLength": 2, "maxLength": 5},
    {"type": "string", "pattern": "^[a-z]+\\d{2,3}$"}, {"type": "string", "pattern": "ab+"}, {"type": "string",
        "pattern": "^\"[^x]\\\\\\s"}, {"type": "string", "pattern": "^a|b$"},
    {"type": "number", "minimum": -3, "maximum": 12}, {"type": "number", "exclusiveMinimum": 0}, {"type": "number",
        "exclusiveMinimum": 0, "exclusiveMaximum": 1}, {"type": "number", "maximum": -2},
    {"type": "number", "minimum": 5, "maximum": 5}, {"type": "number", "exclusiveMinimum": -10, "exclusiveMaximum": -9},
        {"type": "number", "minimum": 0}, {"type": "number", "maximum": 0},
    {"type": "number", "exclusiveMaximum": 0}, {"type": "integer", "exclusiveMinimum": 9, "exclusiveMaximum": 1001},
        {"type": "integer", "minimum": -105, "maximum": 98}, {"type": "integer", "maximum": -77},
    {"type": "integer", "minimum": 12345}, {"type": "integer", "minimum": 0.5, "maximum": 2.5},
    {"allOf": [{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
        {"properties": {"b": {"type": "string"}, "a": {"maximum": 5}}, "required": ["b"]}]},
    {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"],
        "anyOf": [{"properties": {"y": {"type": "string"}}, "required": ["y"]}, {"properties": {"z": {"type": "null"}},
        "required": ["z"]}]},
    {"oneOf": [{"type": "integer", "maximum": 5}, {"type": "string", "maxLength": 2}]}, {"type": "array",
        "prefixItems": [{"type": "integer"}, {"type": "string"}], "items": False, "minItems": 1},
    {"type": "array", "prefixItems": [{"type": "integer"}], "items": {"type": "boolean"}, "minItems": 2, "maxItems": 4},
        {"type": "object", "additionalProperties": {"type": "integer"}, "maxProperties": 3},
    {"type": "array", "items": {"type": "object", "properties": {"k": {"type": "string", "format": "date"}}, "required": ["k"]},
        "maxItems": 3},
] + [{"type": "string", "format": name} for name in ("date", "time", "date-time", "uuid", "email", "ipv4", "ipv6", "hostname",
    "uri", "duration")]
REFUSED = [{"type": "string", "not": {"const": "x"}}, {"type": "integer", "multipleOf": 3}, {"type": "array",
    "uniqueItems": True}, {"patternProperties": {"a": {}}}, {"type": "string", "format": "nosuch"},
           {"if": {}, "then": {}}, {"$ref": "http://x/y"}, {"$ref": "#/$defs/nosuch"}, {"$ref": "#"}, {"type": "nosuch"},
               {"type": "string", "pattern": "(?=a)b"}, {"type": "string", "pattern": "(a)\\1"},
           {"type": "string", "minLength": 3, "maxLength": 2}, {"type": "integer", "minimum": 5, "maximum": 4}, False,
               {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]},
           {"minContains": 1, "contains": {}}, {"type": "string", "pattern": "a", "minLength": 3}, {"enum": []},
               {"type": "object", "properties": {"a": {}}, "minProperties": 3}, {"type": "number", "minimum": 0.5},
           {"dependentRequired": {"a": ["b"]}}, {"propertyNames": {"maxLength": 3}}, 5, {"allOf": [{"pattern": "a"},
               {"pattern": "b"}]}, {"type": "string", "format": "regex"}, {"unevaluatedProperties": False}]
REGEXES = ["a", "a*b+c?", "(foo|bar){2,3}", "[^a-z]{1,4}", "\\d+\\.\\d{2}", "[\\w.]+@[a-z]+\\.(com|org)", "\\s\\S\\D\\W",
    ".{3}", "[żółć]+", "a{0}b", "(?:x|y(?P<n>z))*!", "[\\]\\-a]", "\\x41\\u0142", "", "(a|)b", "[^\\W\\d_]", "[^\\s]"]
GBNF = [("root ::= \"a\" b* \"c\"\nb ::= [0-9] | \"x\"{2,3} # comment", "a([0-9]|x{2,3})*c"),
    ("root ::= (\"yes\" |\n \"no\") \"\\n\"?", "(yes|no)\n?"), ("root ::= [^\\n\\x41-\\x5A]{2}", "[^\\nA-Z]{2}"),
        ("root ::= x+\nx ::= \"\\u0142\" | .", "(.|\\n)+"), ("root ::= \"(\" root \")\" | \"\"", "\\(*\\)*"),
            ("root ::= a-b\na-b ::= \"q\"+ \"\"", "q+")]
GBNF_REFUSED = ["", "root ::= root \"a\"", "root ::= a \"b\"\na ::= \"\" root", "a ::= \"b\"", "root ::= x", "root ::= \"a",
    "root ::= [a", "root ::= (\"a\"", "root ::= \"a\"\nroot ::= \"b\"", "root ::= \"x\"{3,2}",
                "root ::= \"(\" root \")\"", "root = \"a\"", "root ::= \"\\q\"", "root ::= \"a\"{999999999}",
                    "root ::= <think>", "root ::= " + "(" * 500]
REGEX_REFUSED = ["(", ")", "a**", "[a", "(?=a)", "(?!a)", "\\b", "\\1", "a{2,1}", "*a", "\\p{L}", "a++", "[b-a]", "(?i)a",
    "a^b", "x{100001}", "(" * 500]
REGEX_PARTS = ["a", "b", "\\d", "\\w", ".", "[a-f]", "[^x]", "\\.", "ł", "\\s", "[\\d_]", "x", "[^\\d]", "\\S", "\"", "\\\\",
    "\\n", "/"]


def random_regex(r, depth=0):
    k = r.randrange(5) if depth < 3 else 0
    if k == 1:
        return "(" + "|".join(random_regex(r, depth + 1) for _ in range(r.randrange(1, 4))) + ")"
    if k == 2:
        return "(?:" + random_regex(r, depth + 1) + ")" + r.choice(["?", "*", "+", "{2}", "{1,3}", "{0,2}", "{2,}", "*?"])
    if k == 3:
        return random_regex(r, depth + 1) + random_regex(r, depth + 1)
    return r.choice(REGEX_PARTS)


def random_schema(r, depth=0):
    k = r.randrange(13 if depth < 3 else 7)
    if k == 0:
        low = r.choice([None, r.randrange(-1000, 1000), r.randrange(-9, 9)])
        high = r.choice([None, (low or 0) + r.randrange(0, 2000)])
        schema = {"type": r.choice(["integer", "number"])}
        if low is not None:
            schema[r.choice(["minimum", "exclusiveMinimum"])] = low
        if high is not None:
            schema[r.choice(["maximum", "exclusiveMaximum"])] = high + 2
        return schema
    if k == 1:
        low = r.randrange(4)
        return {"type": "string", "minLength": low, "maxLength": low + r.randrange(5)}
    if k == 2:
        return {"type": "string", "pattern": r.choice(["^", ""]) + random_regex(r) + r.choice(["$", ""])}
    if k == 3:
        return {"type": r.choice(["boolean", "null", "string", "integer", "number"]), "description": "d"}
    if k == 4:
        return {"enum": r.sample(["a", "b\"c", 1, 2.5, None, False, [], {"a": 1}, "\\", "日本"], r.randrange(1, 4))}
    if k == 5:
        return {"type": r.sample(["boolean", "null", "string", "integer"], 2)}
    if k == 6:
        return {"const": r.choice(["x", 3, {"a": [None]}, []])}
    if k == 7:
        low = r.randrange(3)
        return {"type": "array", "items": random_schema(r, depth + 1), "minItems": low, "maxItems": low + r.randrange(3)}
    if k == 8:
        return {"anyOf": [random_schema(r, depth + 1) for _ in range(r.randrange(1, 4))]}
    if k == 9:
        schema = {"type": "array", "prefixItems": [random_schema(r, depth + 1) for _ in range(r.randrange(1, 3))],
            "minItems": r.randrange(3)}
        if r.random() < 0.5:
            schema["items"] = r.choice([False, {"type": "integer"}])
        return schema
    names = r.sample(["a", "b", "ab", "abc", "x y", "q\"", "ł", "id", "name"], r.randrange(1, 5))
    schema = {"type": "object", "properties": {n: random_schema(r, depth + 1) for n in names}, "required": r.sample(names,
        r.randrange(len(names) + 1))}
    if r.random() < 0.6:
        schema["additionalProperties"] = r.choice([False, True, {"type": "integer"}, random_schema(r, depth + 1)])
    return schema


def format_fits(name, text):
    if name == "date":
        datetime.date.fromisoformat(text)
    elif name == "time":
        datetime.time.fromisoformat(text)
    elif name == "date-time":
        datetime.datetime.fromisoformat(text)
    elif name == "uuid":
        uuid.UUID(text)
    elif name in ("ipv4", "ipv6"):
        ipaddress.ip_address(text)
    elif name == "email":
        return re.fullmatch(r"[^@\s]+@[^@\s]+\.[a-z]+", text)
    return True


def unique_names(pairs):
    names = [name for name, _ in pairs]
    if len(set(names)) != len(names):
        raise KeyError("a name twice")
    return dict(pairs)


def fits_schema(schema, text):
    value = json.loads(text)
    if jsonschema:
        DRAFT(schema).validate(value)
    if isinstance(schema, dict) and "format" in schema:
        return format_fits(schema["format"], value)
    return True


def requests(options):
    r = random.Random(options.seed)
    for schema in SCHEMAS:
        yield "schema", json.dumps(schema, ensure_ascii=False), 60, lambda t, s=schema: fits_schema(s, t)
    for pattern in REGEXES:
        yield "regex", pattern, 40, lambda t, p=pattern: re.fullmatch(p, t)
    for grammar, pattern in GBNF:
        yield "gbnf", grammar, 40, lambda t, p=pattern: re.fullmatch(p, t)
    yield "json", "", 300, lambda t: [json.loads(t)]
    yield "object", "", 300, lambda t: isinstance(json.loads(t), dict)
    for kind, texts in (("schema", [json.dumps(s) for s in REFUSED]), ("gbnf", GBNF_REFUSED), ("regex", REGEX_REFUSED)):
        for text in texts:
            yield kind, text, 0, None
    for _ in range(options.count // 20):
        if r.random() < 0.5:
            schema = random_schema(r)
            yield "schema", json.dumps(schema, ensure_ascii=False), 20, lambda t, s=schema: fits_schema(s, t)
        else:
            pattern = random_regex(r)
            yield "regex", pattern, 20, lambda t, p=pattern: re.fullmatch(p, t)


def problem_of(text, fits):
    try:
        return None if fits(text) else "does not fit"
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:200]}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    every = list(requests(options))
    lines = "".join(json.dumps({"kind": kind, "text": text, "seed": i, "count": count}) + "\n" for i, (kind, text, count,
        _) in enumerate(every))
    run = subprocess.run([options.program], input=lines, capture_output=True, text=True)
    answers = run.stdout.split("\n")[:-1]
    failed = texts = unfinished = 0
    for (kind, text, count, fits), line in zip(every, answers):
        answer = json.loads(line)
        if fits is None:
            if answer.get("code") != 2:
                failed += 1
                print(f"{kind} {text[:200]!r} should be refused: {line[:200]}")
            continue
        if "error" in answer:
            if "matches no text" not in answer["error"] or count != 20:
                failed += 1
                print(f"{kind} {text!r}: {answer['error']}")
            continue
        unfinished += answer["unfinished"]
        for sample in answer["texts"]:
            texts += 1
            if difference := problem_of(sample, fits):
                failed += 1
                print(f"{kind} {text!r}: {sample!r}: {difference}")
    if run.returncode or len(answers) != len(every):
        failed += 1
        print(f"{len(every)} requests, {len(answers)} answers, exit code {run.returncode}: {run.stderr[-500:]}")
    print(f"{texts} texts, {unfinished} unfinished, {failed} failed{'' if jsonschema else '; without jsonschema, only as JSON'}")
    return 1 if failed else 0


sys.exit(main())
