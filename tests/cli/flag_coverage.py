"""Every flag of every command has a case, and wrong uses end with exit code 2: flag_coverage.py SDX CASE.txt...

Flags are taken from `--help`. One is covered where a case of that command has it, under any of its spellings. Short and long forms of
one flag count as one; negations ("--no-optimize,--optimize") too. Then every command gets an unknown flag, and every flag that takes a
value none, and one of the wrong kind: the exit code must be 2, and the message must name the flag or the value.
"""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import tiny_models

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from scratch import scratch  # noqa: E402

# Flags whose cases need more than a command line (a server that answers): the program that tests them.
EVERYWHERE = ({"-q", "--quiet"}, {"--quiet"}, {"-v", "--verbose"}, {"--verbose"})  # every_command.py tries these with each command
ELSEWHERE = {command: Path(__file__).resolve().parent.parent / "hub" / "pull_test.py" for command in ("pull", "models pull")}


def help_text(sdx, command):
    return subprocess.run([sdx, *command, "--help"], capture_output=True, text=True, check=True).stdout


def subcommands(text):
    head = re.search(r"^Subcommands:\n((?:  .*\n)+)", text, re.M)
    return re.findall(r"^  ([a-z][a-z-]*)", head.group(1), re.M) if head else []


def flags(text):
    """(spellings, kind of value or "") of each flag, from every group of options."""
    body = re.split(r"^(?:Subcommands|Examples):", re.sub(r"^Positionals:\n(?:  .*\n)+", "", text, flags=re.M), flags=re.M)[0]
    for line in body.splitlines():
        if match := re.match(r"  (-[^ ]+) ?(\S*)", line):
            names = [re.sub(r"\{.*", "", n).lstrip("!") for n in match.group(1).split(",")]
            if "--help" not in names and "--version" not in names:
                yield names, match.group(2) if re.match(r"[A-Z]", match.group(2)) and line[match.end(1)] == " " else ""


def commands(sdx):
    todo = [[]]
    while todo:
        command = todo.pop(0)
        text = help_text(sdx, command)
        yield command, text
        todo += [[*command, name] for name in subcommands(text)] if len(command) < 2 else []


def used(paths):
    """Words of each command line in the case files."""
    for path in paths:
        for line in path.read_text().splitlines():
            if match := re.match(r"\s*\$ (?:[A-Z_]+=\S+ )*sdx (.*)", line):
                yield shlex.split(match.group(1), comments=True)


def has(words, names):
    for word in words:
        for name in names:
            if word == name or word.startswith(name + "=") or (not name.startswith("--") and word.startswith(name)):
                return True
    return False


# What commands need besides the flag in question.
NEEDS = {
    "run": ["add.onnx", "--random"],
    "inspect": ["add.onnx"],
    "init": ["add.onnx"],
    "convert": ["add.onnx", "-o", "out.onnx"],
    "explain": ["add.onnx"],
    "verify": ["good.case.json"],
    "bench": ["add.onnx", "-n", "1"],
    "sweep": ["scale.onnx", "-n", "1"],
    "report": ["fast.json"],
    "diff": ["fast.json", "fast.json"],
    "compare-outputs": ["add.onnx", "-b", "cpu", "-b", "cpu+no-optimize"],
    "pull": ["add.onnx", "--to", "there"],
    "models pull": ["add.onnx", "--to", "there"],
    "models show": ["a"],
    "models rm": ["a"],
    "models add": ["a", "add.onnx"],
    "show": ["a"],
    "rm": ["a"],
    "completion": ["bash"],
    "faces detect": ["light.png"],
    "faces crop": ["light.png", "-o", "out"],
    "faces align": ["light.png", "-o", "out"],
    "faces blur": ["light.png", "-o", "out"],
    "faces bench": ["light.png"],
    "perplexity": ["talker.gguf", "-i", "texts.txt"],
    "tokenize": ["letters"],
    "generate": ["talker.gguf", "-p", "ab"],
    "chat": ["talker.gguf", "--messages", "question.json"],
    "checkpoint show": ["one.ckpt"],
    "checkpoint diff": ["one.ckpt", "one.ckpt"],
    "checkpoint export": ["one.ckpt", "-o", "x.npz"],
    "checkpoint apply": ["one.ckpt", "two.ckpt", "-o", "x.ckpt"],
    "checkpoint average": ["one.ckpt", "-o", "x.ckpt"],
    "quantize": ["classifier.onnx", "-o", "out8.onnx"],
    "artifacts": ["classifier.onnx", "-o", "made"],
    "train": ["made", "--data", "points.npz"],
    "embed": ["embedder", "-i", "texts.txt"],
    "rerank": ["reranker", "-q", "ab", "-i", "texts.txt"],
    "transcribe": ["speech.wav", "-m", "whisper"],
}
# Flags that matter where a picture is read.
PICTURES = ("--resize", "--crop", "--fill", "--scale", "--mean", "--std")
# Values that are no value of that kind. What takes any text has none.
WRONG = {"N": "x", "N,…": "x", "W,…": "x", "TIME": "soon", "DURATION": "soon", "SIZE": "lots", "SYMBOL=N": "n=x", "PERCENT": "nan", "P": "2", "X": "x", "HZ": "x",
         "R": "nan", "K": "x", "WxH": "x", "GREY": "x", "IDS": "x", "CHAIN": "cpuu", "PASS": "no-such-pass", "INPUT=SHAPE": "a", "NAME=SHAPE": "a=b",
         "PLACE": "left", "FILL": "purplish", "SHAPE": "star", "WHICH": "biggest", "LEVEL": "good", "SETTINGS": "nice", "FORMAT": "gif",
         "TEMPLATE": "{name}", "MODE": "keep", "NAME=VALUE": "x", "SHARE": "2", "WORD": "no-such-word", "WORDS": "no-such-word", "X,…": "x"}


def wrong_uses(sdx, folder, command, named, failures):
    def refuse(words, hints):
        picture = words[0] in PICTURES and command[0] not in ("models", "faces", "quantize", "train")
        needs = ["picture.onnx", "-i", "image=red.png"] if picture else NEEDS.get(" ".join(command), [])
        needs = needs + ["-b", "cpu", "-b", "cpu+no-optimize"] if picture and command == ["compare-outputs"] else needs
        result = subprocess.run([sdx, *command, *needs, *words], cwd=folder, capture_output=True, text=True, timeout=60,
                                stdin=subprocess.DEVNULL)
        if result.returncode != 2 or not any(h in result.stderr for h in hints):
            failures.append(f"{' '.join(['sdx', *command, *needs, *words])}: exit code {result.returncode}: "
                            f"{result.stderr.strip()[:200]}")
        return 1

    count = refuse(["--no-such-flag"], ["--no-such-flag"])
    for names, kind in named:
        if not kind:
            continue
        count += refuse([names[-1]], names)
        values = WRONG.get(re.split(r"[: ]", kind)[0], "no-such-value" if ":{" in kind else None)
        if values is not None:
            count += refuse([names[-1], values], [*names, values, f"'{values.split('=')[-1]}'"])
    return count


def main():
    sdx = str(Path(sys.argv[1]).resolve())
    lines = list(used(Path(p) for p in sys.argv[2:]))
    problems, seen, refused = [], 0, 0
    with scratch() as folder:
        tiny_models.write_all(folder)
        for command, text in commands(sdx):
            named = list(flags(text))
            own = [w for w in lines if w[:len(command)] == command]
            elsewhere = ELSEWHERE.get(" ".join(command))
            program = elsewhere.read_text() if elsewhere else ""
            for names, _ in named:
                seen += 1
                if set(names) in EVERYWHERE and (command != ["verify"] or "--verbose" in names):
                    continue
                if not any(has(words, names) for words in own) and not any(f'"{n}"' in program for n in names):
                    problems.append(" ".join(["no case for sdx", *command, ",".join(names)]))
            if not subcommands(text):
                refused += wrong_uses(sdx, folder, command, named, problems)
    for p in problems:
        print(p)
    print(f"{seen} flags, {refused} wrong uses, {len(problems)} problems")
    return 1 if problems or seen < 50 else 0


if __name__ == "__main__":
    sys.exit(main())
