"""Random texts that grammars let through, against Python's own judges: json, re, and jsonschema where it is installed.

usage: grammar_samples.py SAMPLE_GRAMMARS [--count N] [--seed N]
--count: texts of random schemas and regular expressions; about as many more come from a fixed list.
"""
import argparse
import datetime
import ipaddress
import json
import pathlib
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
SCHEMAS += [
    {"type": "integer", "multipleOf": 3}, {"type": "integer", "multipleOf": 40, "minimum": -1000, "maximum": 1000},
    {"type": "integer", "multipleOf": 6, "exclusiveMinimum": 0}, {"type": "number", "multipleOf": 0.25, "maximum": 8},
    {"type": "number", "minimum": 0.5}, {"type": "number", "minimum": -1.25, "exclusiveMaximum": 0.125},
    {"type": "number", "exclusiveMinimum": 2.5, "maximum": 2.75}, {"type": "integer", "minimum": -2**53 + 1, "maximum": 2**53 - 1},
    {"type": "array", "items": {"enum": ["a", "b", "c", "d"]}, "uniqueItems": True, "minItems": 1, "maxItems": 3},
    {"type": "array", "items": {"type": "boolean"}, "uniqueItems": True}, {"type": "string", "format": "nosuch"},
    {"type": "object", "patternProperties": {"^[a-c]{1,2}$": {"type": "integer"}, "^x": {"type": "null"}}},
    {"type": "object", "properties": {"ab": {"type": "integer"}, "z": {}}, "patternProperties": {"^[a-c]{1,2}$": {"maximum": 3}},
        "required": ["ab"]},
    {"type": "object", "propertyNames": {"maxLength": 3}, "additionalProperties": {"type": "integer"}},
    {"type": "object", "propertyNames": {"enum": ["p", "q"]}, "additionalProperties": {"type": "boolean"}, "required": ["q"]},
    {"unevaluatedProperties": False, "properties": {"a": {"type": "null"}}}, {"type": "array", "prefixItems": [{}, {}], "unevaluatedItems": False},
    {"type": "string", "pattern": "^[a-z]+$", "minLength": 3, "maxLength": 6}, {"type": "string", "pattern": "^id-\\d*$", "maxLength": 8},
    {"type": "string", "format": "uri", "minLength": 1, "maxLength": 2083}, {"type": "string", "pattern": "^\\bab+\\b$"},
    {"type": "string", "enum": ["a", "abc"], "minLength": 2}, {"type": "integer", "maximum": 5, "markdownDescription": "x"}]
REFUSED = [{"$ref": "http://x/y"}, {"$ref": "#/$defs/nosuch"}, {"$ref": "#nosuch"}, {"$ref": "#"}, {"type": "nosuch"}, {"not": {}},
           {"type": "string", "minLength": 3, "maxLength": 2}, {"type": "integer", "minimum": 5, "maximum": 4}, False,
               {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}, {"not": {"not": {"not": {}}}},
           {"enum": []}, {"not": 5}, {"type": "array", "contains": 5}, {"if": 5, "then": False},
           {"type": "string", "not": {"type": "string"}}, {"type": "array", "contains": False}, {"$dynamicRef": "http://x/y"},
           5, {"allOf": [{"pattern": "a"}, {"pattern": "b"}]}, {"type": "integer", "multipleOf": 0}]
# What doubles with each part ends at once, held, left out or refused.
HOSTILE = [
    {"dependentRequired": {f"p{i}": [f"q{i}"] for i in range(500)}, "type": "object"},
    {"type": "object", "allOf": [{"if": {"required": [f"p{i}"]}, "then": {"required": [f"q{i}"]}} for i in range(200)]},
    {"type": "object", "allOf": [{"anyOf": [{"required": [f"p{i}"]}, {"required": [f"q{i}"]}]} for i in range(60)]},
    {"type": "array", "contains": {"type": "null"}, "minContains": 100000, "maxContains": 100001, "minItems": 200000},
    {"type": "array", "items": {"type": "array", "contains": {"contains": {"contains": {"const": 1}}, "minContains": 30, "maxItems": 30}, "minContains": 30, "maxItems": 30}},
    {"type": "integer", "not": {"enum": list(range(2000))}},
    {"type": "string", "not": {"enum": [f"{i}" * 40 for i in range(2000)]}},
    {"not": {"anyOf": [{"properties": {f"p{i}": {"const": 1}}, "required": [f"p{i}", f"q{i}"]} for i in range(60)]}, "type": "object"},
    {"$ref": "#/$defs/a", "$defs": {"a": {"not": {"$ref": "#/$defs/a"}}}},
    {"if": {"$ref": "#"}, "then": {"$ref": "#"}, "else": {"$ref": "#"}},
    {"type": "object", "dependentSchemas": {"a": {"$ref": "#"}}, "properties": {"a": {"$ref": "#"}}},
]
for _ in range(3):
    HOSTILE.append({"not": HOSTILE[-1], "type": "object", "if": HOSTILE[-2], "then": HOSTILE[-3]})
deep = {"type": "integer"}
for _ in range(60):
    deep = {"not": deep}
HOSTILE.append(deep)
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
REGEX_REFUSED = ["(", ")", "a**", "[a", "(?=a)", "(?!a)", "\\b", "\\1", "a{2,1}", "*a", "\\p{Script=Greek}", "a\\bb", "a++", "[b-a]", "(?i)a",
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


def random_test(r, depth=0):
    """A schema as stands behind `not`, `if` and `contains`."""
    k = r.randrange(12 if depth < 2 else 7)
    if k == 0:
        return {"const": r.choice(["a", "b", 1, 2.5, None, True])}
    if k == 1:
        return {"enum": r.sample(["a", "b", "c", 0, 1, 2, None, True, False], r.randrange(1, 4))}
    if k == 2:
        return {"type": r.choice(["string", "number", "boolean", "null", ["object", "array"], ["string", "null"]])}
    if k == 3:
        return {r.choice(["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"]): r.randrange(-3, 4)}
    if k == 4:
        return {r.choice(["minLength", "maxLength", "minItems", "maxItems"]): r.randrange(4)}
    if k == 5:
        return {"required": r.sample(["a", "b", "c"], r.randrange(1, 3))}
    if k == 6:
        return r.choice([True, False, {}])
    if k == 7:
        return {"properties": {n: random_test(r, depth + 1) for n in r.sample(["a", "b", "c"], r.randrange(1, 3))}}
    if k == 8:
        return {"not": random_test(r, depth + 1)}
    if k == 9:
        return {"contains": random_test(r, depth + 1), **r.choice([{}, {"minContains": r.randrange(3)}, {"maxContains": r.randrange(1, 3)}])}
    if k == 10:
        return {r.choice(["anyOf", "allOf"]): [random_test(r, depth + 1) for _ in range(r.randrange(1, 3))]}
    return {**as_object(random_test(r, depth + 1)), **as_object(random_test(r, 2))} if r.random() < 0.9 else {"pattern": "a"}


def as_object(test):
    return test if isinstance(test, dict) else {}


def random_conditions(r):
    leaf = lambda: r.choice([{"enum": ["a", "b", "c"]}, {"type": "integer", "minimum": -3, "maximum": 3}, {"type": "boolean"}, {"type": "null"},
                             {"type": "string", "maxLength": 3}, {"type": ["integer", "null"]}, {"enum": ["a", 1, None, True]}])
    if r.random() < 0.3:
        low = r.randrange(3)
        schema = {"type": "array", "items": leaf(), "contains": random_test(r), "minItems": r.randrange(3), "maxItems": r.randrange(2, 6),
                  "minContains": low}
        if r.random() < 0.4:
            schema["maxContains"] = low + r.randrange(3)
        return schema
    if r.random() < 0.3:
        return {**leaf(), "not": random_test(r)}
    schema = {"type": "object", "properties": {n: leaf() for n in r.sample(["a", "b", "c"], r.randrange(1, 4))}}
    if r.random() < 0.7:
        schema["additionalProperties"] = r.choice([False, False, True, {"type": "integer", "maximum": 2}])
    if r.random() < 0.4:
        schema["required"] = [r.choice(["a", "b"])]
    for _ in range(r.randrange(1, 4)):
        k = r.randrange(6)
        if k == 0:
            schema["not"] = random_test(r)
        elif k == 1:
            schema.update({"if": random_test(r), "then": as_object(random_test(r))})
            if r.random() < 0.5:
                schema["else"] = as_object(random_test(r))
        elif k == 2:
            schema["dependentRequired"] = {r.choice(["a", "b"]): r.sample(["a", "b", "c"], r.randrange(3))}
        elif k == 3:
            schema["dependentSchemas"] = {r.choice(["a", "b"]): random_test(r)}
        elif k == 4:
            schema["allOf"] = [{"if": random_test(r), "then": as_object(random_test(r))} for _ in range(r.randrange(1, 4))]
        else:
            schema["anyOf"] = [random_test(r) for _ in range(r.randrange(1, 3))]
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
        (jsonschema.Draft7Validator if "draft-07" in str(schema) else DRAFT)(schema).validate(value)
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
        k = r.random()
        if k < 0.7:
            schema = random_conditions(r) if k < 0.35 else random_schema(r)
            yield "schema", json.dumps(schema, ensure_ascii=False), 20, lambda t, s=schema: fits_schema(s, t)
        else:
            pattern = random_regex(r)
            yield "regex", pattern, 20, lambda t, p=pattern: re.fullmatch(p, t)


def corpus(program, seed):
    """Schemas as programs write them, with what fits, what does not, and what is left to whoever reads the answer."""
    cases = json.loads((pathlib.Path(__file__).parent / "schemas.json").read_text())
    problems, texts = [], 0
    for case in cases:
        good, bad = ([json.dumps(value) for value in case[kind]] for kind in ("good", "bad"))
        request = {"kind": "schema", "text": json.dumps(case["schema"]), "seed": seed, "count": 60, "try": good + bad}
        answer = json.loads(subprocess.run([program], input=json.dumps(request) + "\n", capture_output=True, text=True, timeout=60).stdout)
        if "error" in answer:
            problems.append(f"{case['name']}: {answer['error']}")
            continue
        left_out = case.get("unenforced", [])
        if answer["unenforced"] != left_out:
            problems.append(f"{case['name']}: not enforced are {answer['unenforced']}, not {left_out}")
        for text, fits in zip(good + bad, answer["fit"]):
            if fits != (text in good):
                problems.append(f"{case['name']}: {text} {'fits' if fits else 'does not fit'}")
            if jsonschema and not left_out and bool(problem_of(text, lambda t, c=case: fits_schema(c["schema"], t) or True)) != (text in bad):
                problems.append(f"{case['name']}: {text} is in the wrong list")
        if not answer["texts"]:
            problems.append(f"{case['name']}: no text was finished")
        for text in answer["texts"]:
            texts += 1
            if not left_out and (difference := problem_of(text, lambda t, c=case: fits_schema(c["schema"], t))):
                problems.append(f"{case['name']}: {text!r}: {difference}")
    for schema in HOSTILE:
        request = {"kind": "schema", "text": json.dumps(schema), "seed": seed, "count": 1}
        run = subprocess.run([program], input=json.dumps(request) + "\n", capture_output=True, text=True, timeout=60)
        answer = json.loads(run.stdout or "{}")
        if run.returncode or ("error" in answer and answer["code"] != 2) or not answer:
            problems.append(f"{request['text'][:100]}: exit code {run.returncode}, {run.stdout[:200]} {run.stderr[-300:]}")
    for problem in problems:
        print(problem)
    print(f"{len(cases)} schemas of programs, {texts} texts, {len(problems)} problems")
    return len(problems)


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
    failed = texts = unfinished = left_out = never = 0
    for (kind, text, count, fits), line in zip(every, answers):
        answer = json.loads(line)
        if fits is None:
            if answer.get("code") != 2:
                failed += 1
                print(f"{kind} {text[:200]!r} should be refused: {line[:200]}")
            continue
        if "error" in answer:
            if not any(part in answer["error"] for part in ("matches no text", "allows nothing")) or count != 20:
                failed += 1
                print(f"{kind} {text!r}: {answer['error']}")
            else:
                never += 1
            continue
        unfinished += answer["unfinished"]
        if answer["unenforced"]:
            left_out += 1
            continue
        for sample in answer["texts"]:
            texts += 1
            if difference := problem_of(sample, fits):
                failed += 1
                print(f"{kind} {text!r}: {sample!r}: {difference}")
    if run.returncode or len(answers) != len(every):
        failed += 1
        print(f"{len(every)} requests, {len(answers)} answers, exit code {run.returncode}: {run.stderr[-500:]}")
    print(f"{texts} texts, {unfinished} unfinished, {left_out} grammars with less than was asked for, {never} that nothing fits, {failed} failed{'' if jsonschema else '; without jsonschema, only as JSON'}")
    failed += corpus(options.program, options.seed)
    return 1 if failed else 0


sys.exit(main())
