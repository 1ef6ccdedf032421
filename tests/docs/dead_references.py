"""What text names is there: dead_references.py SOURCE_DIR

- Links of README.md and other Markdown to files of the repository, and to headings in them.
- Files and folders of the repository that documents, comments and messages name ("docs/cache.md", "src/ops/<area>/", "tests/ops/*.txt"),
  from the repository's root or from the folder of the file that names them.
"""

import re
import subprocess
import sys
from pathlib import Path

import guides

KINDS = (".md", ".h", ".hpp", ".cc", ".c", ".py", ".pyi", ".txt", ".cmake", ".sh", ".yml", ".toml")
FOLDERS = "apps|bench|bindings|cmake|docs|examples|fuzz|include|src|tests|tools"
NAMED = re.compile(rf"(?<![\w./$}}>-])(?:{FOLDERS})/[\w./*<>{{}}-]*")
LINK = re.compile(r"\]\(([^)\s]+)\)")
# What looks like it, and is something else: in files of these names.
ELSEWHERE = {
    "src/ops/math/broadcast.h": {"docs/Broadcasting.md"},  # of ONNX
    "src/providers/openvino/openvino_test.cc": {"src/inference/src/cpp/core.cpp", "src/frontends/a.cpp", "src/frontends/onnx/conv.cpp"},
    "src/providers/openvino/region_kernel.cc": {"src/a/b.cpp"},
    "Makefile": {"docs/operators.md.new"},  # for a moment
    **{f"docs/{guide}": guides.changes(guide)[1] for guide in guides.GUIDES},  # files that they tell the reader to write
}


def tracked(source):
    try:
        names = subprocess.run(["git", "-C", str(source), "ls-files"], capture_output=True, text=True, check=True).stdout.split("\n")
    except (OSError, subprocess.CalledProcessError):  # a source archive
        names = [str(p.relative_to(source)) for p in source.rglob("*") if not p.relative_to(source).parts[0].startswith(("build", "."))]
    return sorted({n for n in names if (source / n).is_file() and (n.endswith(KINDS) or Path(n).name == "Makefile" or n == ".ci/run")})


def is_there(folder, text):
    """`text` may have parts that stand for any name: "<area>", "*", "{a,b}"."""
    pattern = re.sub(r"<[^>]*>|\{[^}]*\}", "*", text)
    if "*" not in pattern:
        return (folder / pattern).exists()
    return any(True for _ in folder.glob(pattern.rstrip("/")))


def named_paths(source, name, text):
    for match in NAMED.finditer(text):
        path = match.group().rstrip(".,-")
        if path in ELSEWHERE.get(name, ()) or path.count("{") != path.count("}") or path.count("<") != path.count(">"):
            continue  # the last two: cut off within a placeholder
        line = text.count("\n", 0, match.start()) + 1
        yield line, path, any(is_there(folder, path) for folder in (source, (source / name).parent))


def anchors(page):
    """GitHub's names of a page's headings."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", page.read_text(), flags=re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


def links(source, name, text):
    for match in LINK.finditer(re.sub(r"```.*?```", lambda m: "\n" * m.group().count("\n"), text, flags=re.S)):
        target, _, anchor = match.group(1).partition("#")
        if "://" in target:
            continue
        page = (source / name).parent / target if target else source / name
        yield match.group(1), page.exists() and (not anchor or page.suffix != ".md" or anchor in anchors(page))


def main():
    source = Path(sys.argv[1]).resolve()
    seen, dead = 0, []
    for name in tracked(source):
        if (source / name).resolve() == Path(__file__).resolve():
            continue
        text = (source / name).read_text(errors="replace")
        for line, path, there in named_paths(source, name, text):
            seen += 1
            if not there:
                dead.append(f"{name}:{line}: there is no {path}")
        if name.endswith(".md"):
            for link, there in links(source, name, text):
                seen += 1
                if not there:
                    dead.append(f"{name}: the link {link} leads nowhere")
    print("\n".join(dead + [f"{seen} references, {len(dead)} dead"]))
    return 1 if dead or seen < 200 else 0


if __name__ == "__main__":
    sys.exit(main())
