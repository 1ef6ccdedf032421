"""Runs the examples of the documentation: doc_examples.py SDX PROJECT_FOLDER [CXX]

- `console` blocks of README.md and docs/*.md: each "$ sdx …" line is run, one folder for each file, and its standard output compared with
  the lines behind it. In those, "…" stands for anything within a line, and a line that is "…" alone for any number of lines.
- every other line of the documentation and of the examples under `--help` that calls sdx must be understood: whatever is not there, it
  is no wrong use (exit code 2).
- C and C++ blocks of README.md, docs/api.md and docs/python.md compile, their Python blocks parse.

The folder has the models of tests/cli/tiny_models.py, and stand-ins for the files that the examples name.
"""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent.parent / part) for part in ("cli", "support")]
from scratch import scratch  # noqa: E402
import tiny_models as tm  # noqa: E402

# Words that a synopsis has and a command has not.
SYNOPSIS = re.compile(r"\[|\.\.\.|\||…|(?<![A-Za-z_=])[A-Z]{4,}(?![A-Za-z_=.0-9])|\b(MODEL|NAME|SOURCE|FILE|FOLDER|DATA|BASE|RUN|PATH|COMMAND|SYMBOL)\b")


CODE_PAGES = ("README.md", "docs/api.md", "docs/python.md")
# Pages that show how to add something: lines with its name are left out.
ADDED = {"add-a-provider.md": "plain", "add-a-subcommand.md": "opsets"}


def blocks(path):
    """(language, lines) of the fenced blocks."""
    language, lines = None, []
    for line in path.read_text().splitlines():
        if not line.startswith("```"):
            if language is not None:
                lines.append(line)
        elif language is None:
            language, lines = line[3:].strip(), []
        else:
            yield language, lines
            language = None


def write_files(folder):
    tm.write_all(folder)
    shutil.copytree(folder / "add", folder / "model_folder")
    photo = tm.png(8, 8, bytes(range(192)))
    for name in ("photo.png", "photo.jpg", "astronaut.png"):
        (folder / name).write_bytes(photo)
    # As the model of `make demo` takes and gives them, but without its weights.
    image = tm.value_info("input.1", tm.FLOAT, [1, 3, "h", "w"])
    weights = tm.tensor("w", tm.FLOAT, [3, 1, 2, 2], tm.floats(*([0.5] * 12)))
    (folder / "centerface.onnx").write_bytes(
        tm.model([tm.node("ConvTranspose", ["input.1", "w"], ["map"]), tm.node("Sigmoid", ["map"], ["scores"])], [image],
                 [tm.value_info("scores", tm.FLOAT, [1, 1, "a", "b"])], [weights]))


def call(sdx, line, folder):
    words = shlex.split(line, comments=True)
    words[0] = sdx
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=120, errors="replace", stdin=subprocess.DEVNULL)


def matches(expected, actual):
    pattern = ""
    for line in expected:
        if line.strip() == "…":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += ".*?".join(re.escape(part) for part in line.rstrip().split("…")) + r"[ ]*\n"
    return re.fullmatch(pattern, actual) is not None


def run_console(sdx, path, failures):
    count = 0
    with scratch() as folder:
        write_files(folder)
        for language, lines in blocks(path):
            if language != "console":
                continue
            steps = []
            for line in lines:
                if line.startswith("$ "):
                    steps.append((line[2:], []))
                else:
                    steps[-1][1].append(line)
            for command, expected in steps:
                count += 1
                result = call(sdx, command, folder)
                if not matches(expected, result.stdout):
                    failures.append(f"{path.name}: $ {command}\n  expected:\n" + "\n".join(expected) +
                                    f"\n  received (exit code {result.returncode}):\n{result.stdout}{result.stderr}")
    return count


def command_lines(path):
    for language, lines in blocks(path):
        if language == "console":
            continue
        for line in lines:
            text = re.sub(r"^(\$ |source <\()", "", line.strip())
            text = re.sub(r"^(\.\./)*(build/release/)?(bin/)?sdx ", "sdx ", text)
            text = re.split(r"\s{3,}|\s>\s", text)[0].removesuffix(")")
            overview = re.match(r"sdx [a-z-]+(\s{2,}|$)", line.strip())
            added = path.name in ADDED and ADDED[path.name] in text.split(" ", 1)[-1]
            if text.startswith("sdx ") and not added and not overview and not SYNOPSIS.search(re.sub(r"'[^']*'", "''", text)):
                yield text


def help_lines(sdx):
    commands = subcommands(sdx, [])
    for command in commands + [[*c, *sub] for c in commands for sub in subcommands(sdx, c)]:
        text = subprocess.run([sdx, *command, "--help"], capture_output=True, text=True, check=True).stdout
        for line in re.sub(r" \\\n\s+", " ", text).splitlines():  # long examples are folded
            example = re.split(r"\s{3,}\(|\s{3,}#|\s>\s", line.strip())[0]
            if line.startswith("  ") and example.startswith("sdx "):
                yield example


def subcommands(sdx, command):
    text = subprocess.run([sdx, *command, "--help"], capture_output=True, text=True, check=True).stdout
    head = re.search(r"^Subcommands:\n((?:  .*\n)+)", text, re.M)
    return [[*command, name] if not command else [name] for name in re.findall(r"^  ([a-z-]+)", head.group(1), re.M)] if head else []


def check_lines(sdx, where, lines, failures):
    count = 0
    for line in lines:
        if re.match(r"sdx (serve|chat)\b", line) or "://" in line:  # would wait for somebody, or go to the network
            continue
        count += 1
        with scratch() as folder:
            write_files(folder)
            result = call(sdx, line, folder)
        if result.returncode == 2 or result.returncode < 0:
            failures.append(f"{where}: {line}\n  exit code {result.returncode}: {result.stderr.strip()[:400]}")
    return count


def check_code(project, compiler, failures):
    count = 0
    for page, language, lines in ((page, *block) for page in CODE_PAGES for block in blocks(project / page)):
        text = "\n".join(lines) + "\n"
        if language == "python":
            count += 1
            compile(text, page, "exec")
        elif language in ("c", "cpp") and compiler:
            count += 1
            command = [compiler, "-fsyntax-only", "-x", "c" if language == "c" else "c++", "-I", str(project / "include"), "-"]
            command += ["-std=c++20"] if language == "cpp" else []
            result = subprocess.run(command, input=text, capture_output=True, text=True)
            if result.returncode != 0:
                failures.append(f"{page}: {language} block: {result.stderr[:1000]}")
    return count


def main():
    sdx, project = str(Path(sys.argv[1]).resolve()), Path(sys.argv[2])
    compiler = shutil.which(sys.argv[3]) if len(sys.argv) > 3 else None
    failures = []
    pages = [project / "README.md", *sorted((project / "docs").glob("*.md"))]
    run = sum(run_console(sdx, page, failures) for page in pages)
    understood = sum(check_lines(sdx, page.name, command_lines(page), failures) for page in pages)
    understood += check_lines(sdx, "--help", help_lines(sdx), failures)
    compiled = check_code(project, compiler, failures)
    for failure in failures:
        print("FAIL", failure)
    print(f"{run} examples with output, {understood} further command lines, {compiled} blocks of code; {len(failures)} failures")
    # Nothing found means that the documentation or this program has changed its form.
    return 1 if failures or run < 10 or understood < 30 or compiled < 1 else 0


if __name__ == "__main__":
    sys.exit(main())
