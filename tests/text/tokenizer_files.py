#!/usr/bin/env python3
"""Vocabularies of GGUF files, written as tokenizer.json: the files give the ids that the GGUF file gives.

usage: tokenizer_files.py TOKENIZE_LINES [MODEL.gguf]...

Reads the GGUF files of SDX_TEST_MODELS and those that are named, and compares on recorded and random texts: this tokenizer on both, the
package tokenizers on the written file, and llama.cpp's recorded ids; chat templates too. Exit code 77: there is no GGUF file.
"""

import json
import os
import pathlib
import random
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from scratch import scratch  # noqa: E402

os.environ["TOKENIZERS_PARALLELISM"] = "false"
try:
    import tokenizers
except ImportError:
    tokenizers = None
MODELS = pathlib.Path(os.environ.get("SDX_TEST_MODELS", "/nonexistent"))
PIECES = ["the quick brown fox", "don't", "We'll see", "12345 67", "naïve café", "привет", "日本語", "한국어", "👩‍👩‍👧", " ", "  ", "    ", "\n", "\n\n",
          "\t", "\u00a0", "▁", "▁▁x", "Ġ", "<s>", "</s>", "<unk>", "<|im_start|>", "<|im_end|>", "<|endoftext|>", "\u0301", "ﬁ", "\ufffd", "a" * 40,
          "=" * 33, "x = y[i] + 3.14;", "http://a.b/c?d=e", "🏳️‍🌈", "<0x0A>", "\r\n", "ſ", "Hello"]


class Lines:
    def __init__(self, program: str):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8")

    def ask(self, **line) -> dict:
        self.process.stdin.write(json.dumps(line) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        assert "error" not in answer, answer["error"]
        return answer

    def close(self):
        self.process.stdin.close()
        assert self.process.wait(timeout=60) == 0


def texts_of(path: pathlib.Path, rng: random.Random) -> dict:
    """Texts, and their ids where they are recorded."""
    texts = {}
    cases = path.parent / "cases.jsonl"
    if path.name == "vocab.gguf" and cases.exists():
        texts |= {c["text"]: c["ids"] for c in map(json.loads, cases.read_text().splitlines())}
    recorded = MODELS / "tokenizers" / "smollm2_bpe" / "cases.jsonl"
    if recorded.exists():
        for c in map(json.loads, recorded.read_text().splitlines()):
            if isinstance(c.get("text"), str):
                texts.setdefault(c["text"], None)
    for _ in range(300):
        texts.setdefault("".join(rng.choice(PIECES) + rng.choice(["", " ", "\n"]) for _ in range(rng.randint(1, 9))), None)
    return texts


def check(path: pathlib.Path, program: str, folder: pathlib.Path):
    writer = Lines(program)
    without = writer.ask(write=str(path), to=str(folder))["without"]
    writer.close()
    if without:
        assert not any(folder.iterdir()), without
        print(f"{path.parent.name}: no files, since {without}")
        return False
    ours, again = Lines(program), Lines(program)
    ours.ask(load=str(path))
    again.ask(load=str(folder))
    peer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json")) if tokenizers else None
    texts = texts_of(path, random.Random(3))
    for text, recorded in texts.items():
        for special in (True, False):
            expected = ours.ask(text=text, special=special)["ids"]
            assert again.ask(text=text, special=special)["ids"] == expected, (path, text)
            if peer:
                ids = peer.encode(text, add_special_tokens=special).ids
                assert ids == expected, (path, text, ids, expected)
        if peer:
            assert peer.decode(ids, skip_special_tokens=False) == again.ask(ids=ids)["decoded"] == ours.ask(ids=ids)["decoded"], (path, text)
        assert recorded is None or recorded == expected or any(s in text for s in PIECES if s.startswith("<")), (path, text)
    ours.close()
    again.close()
    config = json.loads((folder / "tokenizer_config.json").read_text())
    assert config["eos_token"] == json.loads((folder / "special_tokens_map.json").read_text())["eos_token"]
    print(f"{path.parent.name}: {len(texts)} texts{', as the package tokenizers' if peer else ''}")
    return True


def main() -> int:
    paths = sorted(MODELS.glob("gguf_vocab/*/vocab.gguf")) + [p for p in map(pathlib.Path, sys.argv[2:]) if p.is_file()]
    if not paths:
        print("skipped: there is no GGUF file")
        return 77
    for path in paths:
        with scratch() as temporary:
            check(path, sys.argv[1], temporary)
    return 0


if __name__ == "__main__":
    sys.exit(main())
