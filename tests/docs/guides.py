"""What docs/add-*.md tell a reader to write works: guides.py check BUILD_DIR | apply | follow

check   compiles every source that the guides contain or change, with the flags of its neighbours, and keeps the checkout as it is.
apply   makes the guides' changes in this checkout.
follow  in such a checkout: runs the guides' commands, each of which must succeed and print what its comment says ("# prints NAME").

A block of code whose introduction ends with "`path/of/a/file`:" is that new file. One whose introduction says "In `file`, before `text`"
(or "after") is inserted there; just one line of the file has that text. Blocks of `sh` are commands; model.onnx is any model with a Neg.
"""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from scratch import scratch  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent.parent
GUIDES = ("add-an-op.md", "add-a-pass.md", "add-a-kernel.md", "add-a-provider.md", "add-a-shader.md",
          "add-a-subcommand.md", "add-an-architecture.md")
NEW = re.compile(r"`([\w./-]+/[\w.-]+)`:$")
INSERTED = re.compile(r"\bIn `([\w./-]+)`, (before|after) `([^`]+)`")


def blocks(path):
    """(paragraph before it, language, text) of the fenced blocks."""
    for match in re.finditer(r"^```(\w*)\n(.*?)^```$", path.read_text(), re.M | re.S):
        paragraph = match.string[:match.start()].rstrip().rpartition("\n\n")[2]
        yield " ".join(paragraph.split("\n")), match[1], match[2]


def insert(text, where, mark, lines, name):
    found = [i for i, line in enumerate(text.splitlines()) if mark in line]
    if len(found) != 1:
        raise ValueError(f"{name} has {len(found)} lines with '{mark}', not one")
    kept = text.splitlines(keepends=True)
    at = found[0] + (where == "after")
    return "".join(kept[:at]) + lines + "".join(kept[at:])


def changes(guide):
    """The files that a guide makes or changes: their new texts, and the set of those that it makes."""
    texts, made = {}, set()
    for paragraph, language, text in blocks(ROOT / "docs" / guide):
        if match := INSERTED.search(paragraph):
            name, where, mark = match.groups()
            texts[name] = insert(texts.get(name) or (ROOT / name).read_text(), where, mark, text, name)
        elif language != "sh" and (match := NEW.search(paragraph)):
            texts[match[1]] = text
            made.add(match[1])
    return texts, made


def apply():
    for guide in GUIDES:
        for name, text in changes(guide)[0].items():
            (ROOT / name).parent.mkdir(exist_ok=True)
            (ROOT / name).write_text(text)
            print(f"{guide}: {name}")
    return 0


def commands_of(build):
    """How each source is compiled, also those that are compiled together (SDX_UNITY)."""
    found = []
    for entry in json.loads((Path(build) / "compile_commands.json").read_text()):
        together = Path(entry["file"]).parent.parent.name == "Unity"
        sources = re.findall(r'^#include "(.*\.cc)"', Path(entry["file"]).read_text(), re.M) if together else [entry["file"]]
        found += [{**entry, "file": source} for source in sources]
    return found


def neighbours_command(commands, name):
    """How a source of the same folder is compiled, or, for a folder that is new, one of a folder beside it."""
    folder = str((ROOT / name).parent)
    for place in (folder, str(Path(folder).parent)):
        near = [c for c in commands if c["file"].startswith(place + "/") and c["file"].endswith("_test.cc") == name.endswith("_test.cc")]
        if near:
            return min(near, key=lambda c: len(Path(c["file"]).relative_to(place).parts))
    raise ValueError(f"nothing is compiled beside {name}")


def compile_one(commands, overlay, name):
    entry = neighbours_command(commands, name)
    words = shlex.split(entry["command"])
    if Path(words[0]).name in ("env", "ccache"):  # launchers
        words = words[next(i for i, word in enumerate(words) if re.search(r"(\+\+|g?cc|clang)(-\d+)?$", word) and "ccache" not in word):]
    for option in ("-o", "-c"):
        at = words.index(option)
        del words[at:at + 2]
    own = [part for folder in ("src", "apps", "tests") for part in ("-I", str(overlay / folder))]
    result = subprocess.run([words[0], *own, *words[1:], "-fsyntax-only", "-Wno-invalid-pch", str(overlay / name)], cwd=entry["directory"],
                            capture_output=True, text=True, check=False)
    return "" if result.returncode == 0 else f"{name}:\n{result.stderr[:3000]}"


def check(build):
    commands = commands_of(build)
    failures, compiled = [], 0
    for guide in GUIDES:
        texts, made = changes(guide)
        failures += [f"{guide}: {name} is there already" for name in made if (ROOT / name).exists()]
        with scratch() as folder:
            for name, text in texts.items():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_text(text)
            sources = [name for name in texts if name.endswith(".cc")]
            compiled += len(sources)
            found = [compile_one(commands, folder, name) for name in sources]
        failures += [f"{guide}: {text}" for text in found if text]
        if not made or not sources:
            failures.append(f"{guide}: no source in it is recognised")
    print("\n".join(failures + [f"{compiled} sources compiled, {len(failures)} failures"]))
    return 1 if failures else 0


def write_model():
    sys.path.insert(0, str(ROOT / "tests" / "cli"))
    import tiny_models as tiny

    ends = [tiny.value_info(name, tiny.FLOAT, [2, 3]) for name in ("x", "y")]
    (ROOT / "model.onnx").write_bytes(tiny.model([tiny.node("Neg", ["x"], ["n"]), tiny.node("Abs", ["n"], ["y"])], ends[:1], ends[1:]))


def follow():
    write_model()
    try:
        for guide in GUIDES:
            for line in (line for _, language, text in blocks(ROOT / "docs" / guide) if language == "sh" for line in text.splitlines()):
                print(f"{guide}: {line}", flush=True)
                result = subprocess.run(line, shell=True, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
                wanted = re.search(r"# prints (\S+)", line)
                if result.returncode != 0 or (wanted and wanted[1] not in result.stdout):
                    print(f"{result.stdout[-6000:]}\nFAIL exit code {result.returncode}")
                    return 1
    finally:
        (ROOT / "model.onnx").unlink()
    return 0


if __name__ == "__main__":
    sys.exit({"check": check, "apply": apply, "follow": follow}[sys.argv[1]](*sys.argv[2:]))
