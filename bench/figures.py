#!/usr/bin/env python3
"""Figures of the documents, from the results: `figures.py --write | --check [--root FOLDER]`.

A figure that a file of bench/results gives is followed by a marker, which readers of the page do not see:

    1.35<!--=zen3/suite onnxruntime 1-->x

--write replaces the figure by what the marker stands for, with as many decimals as it had. --check names the figures that differ.

A marker is FILE [WHAT] COLUMN [ROWS...]; words with spaces are in single quotes.

FILE     a table, CSV or Markdown, below bench/results, without its ending: `text`, or `zen3/suite`, where zen3 is part of a folder's name
WHAT     of the numbers found: mean (geometric; the default), least, most, count, faster (how many are at least 1), only (there is one)
COLUMN   its title. `A/B` divides two columns, `A+B` takes the numbers of both
ROWS     a number: of threads. `#Text`: below a heading with this text. `@transformers`: models of a group. Else: what one of the cells says
"""

import argparse
import csv
import math
import re
import shlex
import sys
from pathlib import Path

MARKER = re.compile(r"(?P<figure>\d[\d,]*(?:\.\d+)?)?<!--=(?P<query>.*?)-->")
GROUPS = {
    "transformers": {"bert_base_128", "bert_base_384", "minilm_l6_128", "distilbert_128", "vit_b16", "swin_t", "detr", "sam_encoder", "whisper_tiny_encoder",
                     "wav2vec2", "conformer", "gpt2_prefill_128", "gpt2_decode_past_256"},
}


class Unknown(Exception):
    """A marker that names nothing."""


def plain(cell):
    return re.sub(r"[*`]", "", cell).strip()


def titles(cells):
    """A column `×` has the name of the peer whose time stands before it."""
    named = []
    for cell in cells:
        named.append(named[-1].removesuffix(" ms") if cell == "×" and named and named[-1].endswith(" ms") else cell)
    return named


def markdown_rows(text):
    """Rows of all tables, as {column: cell}, with the heading above as column "#"."""
    heading, head, rows = "", None, []
    for line in text.splitlines():
        if line.startswith("#"):
            heading = plain(line.lstrip("#"))
        if not line.startswith("|"):
            head = None
            continue
        cells = [plain(cell) for cell in line.strip().strip("|").split("|")]
        if head is None:
            head = titles(cells)
        elif not set(line) <= set("|-: "):
            rows.append({**dict(zip(head, cells)), "#": heading})
    return rows


def find(results, name):
    folder, _, stem = name.rpartition("/")
    folders = [f for f in results.iterdir() if f.is_dir() and folder in f.name] if folder else [results]
    files = [path for f in folders for path in (f / f"{stem}.csv", f / f"{stem}.md") if path.is_file()]
    if not files or len({path.parent for path in files}) > 1:
        raise Unknown(f"{len(files) or 'no'} files of results are called {name}")
    return files[0]


def table(path):
    if path.suffix == ".md":
        return markdown_rows(path.read_text())
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def chosen(rows, words):
    for word in words:
        if word.startswith("#"):
            rows = [row for row in rows if word[1:] in row.get("#", "")]
        elif word.startswith("@"):
            rows = [row for row in rows if row.get("model") in GROUPS.get(word[1:], ())]
        elif word.isdigit() and any({"T", "threads"} & row.keys() for row in rows):
            rows = [row for row in rows if row.get("threads", row.get("T")) == word]
        else:
            rows = [row for row in rows if word in row.values()]
    return rows


def number(text):
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return None  # an engine without a figure for this row


def column(rows, title):
    """Numbers of a column, None for rows without one."""
    if any(title in row for row in rows):
        return [number(row[title]) for row in rows if title in row]
    for mark in "+/":
        for cut in (m.start() for m in re.finditer(re.escape(mark), title)):
            left, right = column(rows, title[:cut]), column(rows, title[cut + 1:])
            if left and right:
                return left + right if mark == "+" else [a / b if a is not None and b else None for a, b in zip(left, right)]
    return []


def only(values):
    if len(values) != 1:
        raise Unknown(f"{len(values)} numbers where one is meant")
    return values[0]


WHAT = {"mean": lambda v: math.exp(sum(map(math.log, v)) / len(v)), "least": min, "most": max, "count": len, "faster": lambda v: sum(x >= 1 for x in v), "only": only}


def value(results, query):
    try:
        name, *words = shlex.split(query)
    except ValueError as error:
        raise Unknown(str(error)) from None
    what = WHAT[words.pop(0)] if words and words[0] in WHAT else WHAT["mean"]
    if not words:
        raise Unknown("no column is named")
    found = [v for v in column(chosen(table(find(results, name)), words[1:]), words[0]) if v is not None]
    if not found:
        raise Unknown("no numbers are found")
    return what(found)


def written(figure, number):
    """A number with as many decimals as the figure that stands there."""
    return f"{number:,.{len(figure.partition('.')[2])}f}"


def renewed(text, results):
    """The text with its figures, and (line, message) for each that differs or cannot be had."""
    wrong = []

    def replace(match):
        line, figure, query = text.count("\n", 0, match.start()) + 1, match["figure"], match["query"]
        try:
            if figure is None:
                raise Unknown("no figure stands before the marker")
            new = written(figure, value(results, query))
        except Unknown as error:
            wrong.append((line, f"{figure or ''}: {error}: {query}", False))
            return match.group()
        if new != figure:
            wrong.append((line, f"{figure} is {new}: {query}", True))
        return f"{new}<!--={query}-->"

    return MARKER.sub(replace, text), wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--write", action="store_true")
    mode.add_argument("--check", action="store_true")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent, help="of the checkout")
    args = parser.parse_args()
    failed = False
    for page in [args.root / "README.md", *sorted((args.root / "bench").glob("*.md")), *sorted((args.root / "docs").rglob("*.md"))]:
        old = page.read_text()
        new, wrong = renewed(old, args.root / "bench/results")
        for line, message, mended in wrong:
            print(f"{page.relative_to(args.root)}:{line}: {message}")
            failed |= args.check or not mended
        if args.write and new != old:
            page.write_text(new)
    if failed and args.check:
        print("`make docs` writes the figures that results give")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
