"""Compares the engine's operators with ONNX's own definitions (onnx.defs), every version of each: schemas.py [--gaps FILE]

Prints each operator version that is missing, each type that the definition permits and the engine does not, each difference in how many
inputs and outputs there may be, and attributes that only one side requires. Exit code 1 when something is found that the file of gaps
("operator version what, reason" a line) does not list, or is listed and not found.
"""

import argparse
import sys

DOMAINS = ("", "ai.onnx.ml", "ai.onnx.preview.training")
ELEMENTS = {
    "float": "float32", "double": "float64", "float16": "float16", "bfloat16": "bfloat16", "int8": "int8", "int16": "int16", "int32": "int32",
    "int64": "int64", "uint8": "uint8", "uint16": "uint16", "uint32": "uint32", "uint64": "uint64", "bool": "bool", "string": "string",
    "complex64": "complex64", "complex128": "complex128", "float8e4m3fn": "float8e4m3fn", "float8e4m3fnuz": "float8e4m3fnuz",
    "float8e5m2": "float8e5m2", "float8e5m2fnuz": "float8e5m2fnuz", "float8e8m0": "float8e8m0", "float4e2m1": "float4e2m1", "int4": "int4",
    "uint4": "uint4", "int2": "int2", "uint2": "uint2", "float6e2m3": "float6e2m3", "float6e3m2": "float6e3m2",
}
KINDS = {"seq": "sequence", "optional": "optional", "map": "map", "sparse_tensor": "sparse"}


def our_name(text):
    """tensor(float) as float32, seq(tensor(float)) as sequence."""
    kind, _, inner = text.partition("(")
    return ELEMENTS.get(inner.rstrip(")"), inner) if kind == "tensor" else KINDS.get(kind, kind)


def formal_gaps(ours, theirs, what):
    for i, formal in enumerate(theirs):
        if not ours:
            yield f"{what} {formal.name} is missing"
            continue
        mine = ours[min(i, len(ours) - 1)]
        if i >= len(ours) and mine[2] != "variadic":
            yield f"{what} {formal.name} is missing"
            continue
        missing = sorted({our_name(t) for t in formal.types} - set(mine[3]))
        if missing:
            yield f"{what} {formal.name}: {' '.join(missing)}"
        option = str(formal.option).rsplit(".", 1)[-1]
        if option == "Optional" and mine[2] == "required" and what == "input":
            yield f"{what} {formal.name} may be left out"
        if option == "Variadic" and mine[2] != "variadic":
            yield f"{what} {formal.name} may repeat"


def gaps():
    """(domain.Operator version, gap) for every difference."""
    import onnx.defs
    from sardonyx import _sardonyx

    table = {}
    for definition in _sardonyx.operators():
        table.setdefault((definition["domain"], definition["name"]), []).append(definition)
    for schema in sorted(onnx.defs.get_all_schemas_with_history(), key=lambda s: (s.domain, s.name, s.since_version)):
        if schema.domain not in DOMAINS or schema.deprecated:
            continue
        name = f"{schema.domain}.{schema.name}" if schema.domain else schema.name
        label = f"{name} {schema.since_version}"
        fitting = [d for d in table.get((schema.domain, schema.name), []) if d["since"] <= schema.since_version]
        if not fitting:
            yield label, "is missing"
            continue
        mine = max(fitting, key=lambda d: d["since"])
        for what, ours, theirs in (("input", mine["inputs"], schema.inputs), ("output", mine["outputs"], schema.outputs)):
            for gap in formal_gaps(ours, theirs, what):
                yield label, gap
        known = {a for a, _ in mine["attributes"]} | {"consumed_inputs"}  # a hint of opset 1 that changes no result
        for attribute in sorted(set(schema.attributes) - known):
            yield label, f"attribute {attribute} is unknown"
        for attribute, required in mine["attributes"]:
            if required and attribute in schema.attributes and not schema.attributes[attribute].required:
                yield label, f"attribute {attribute} may be left out"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gaps", metavar="FILE", help="gaps that are there, with reasons")
    options = parser.parse_args()
    listed = {}
    if options.gaps:
        with open(options.gaps, encoding="utf-8") as lines:
            for line in lines:
                if line.strip() and not line.startswith("#"):
                    gap, _, reason = line.strip().partition(", ")
                    listed[gap] = reason
    found = {f"{label} {gap}" for label, gap in gaps()}
    new, closed = sorted(found - set(listed)), sorted(set(listed) - found)
    for gap in new:
        print(gap)
    for gap in closed:
        print(f"listed but not there: {gap}")
    print(f"{len(found)} gaps, {len(new)} of them not listed")
    return 1 if new or closed else 0


if __name__ == "__main__":
    sys.exit(main())
