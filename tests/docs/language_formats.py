#!/usr/bin/env python3
"""What docs/text.md says about formats of language models is what the sources have: language_formats.py REPOSITORY."""

import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1])


def row(beginning: str) -> list[set[str]]:
    line = next(l for l in (ROOT / "docs/text.md").read_text().splitlines() if l.startswith(beginning))
    return [set(cell.strip().split(", ")) for cell in line.split("|")[2:4]]


def source(path: str) -> str:
    return (ROOT / "src" / path).read_text()


def main() -> int:
    known = re.search(r'kKnown =\s*((?:"[^"]*"\s*)+);', source("text/model/network/decoder_config.cc"))[1]
    gguf = "".join(re.findall(r'"([^"]*)"', known))
    ggml = re.findall(r'\{GgmlType::\w+, "(\w+)"', source("tensor/ggml.cc"))
    folders = re.findall(r'\{\s*\.type = "(\w+)"', source("text/model/network/hf_defaults.cc"))
    floats = re.findall(r"GgmlType::(\w+)", re.search(r"type_of\(DataType t\) \{.*?\n\}", source("text/model/network/safetensors_files.cc"), re.S)[0])
    expected = {
        "| `.gguf` file": [set(gguf.split()), {name.upper() for name in ggml}],
        "| folder with `config.json`": [set(folders) | {"gemma3", "mistral3", "qwen3_5", "qwen3_5_moe"}, {name.upper() for name in floats}],
    }
    for beginning, cells in expected.items():
        found = row(beginning)
        if found != cells or not all(cells):
            print(f"docs/text.md, '{beginning}': {found}, the sources have {cells}")
            return 1
    for beginning, constant in (("| `.gguf` file, or", "kEncoderArchitectures"), ("| folder with `config.json`, `model", "kEncoderTypes")):
        words = re.search(rf'{constant} = "([^"]*)"', source("tensor/gguf/encoder_names.h"))[1].split()
        found = set(re.findall(r"`([\w-]+)`", " ".join(row(beginning)[0])))
        if found != set(words):
            print(f"docs/text.md, '{beginning}': {found}, the sources have {words}")
            return 1
    return 0


sys.exit(main())
