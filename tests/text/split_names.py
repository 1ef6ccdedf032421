#!/usr/bin/env python3
"""Names of tokenizer.ggml.pre, against the package tokenizers with the expressions of the models' own tokenizer.json: split_names.py SDX

Texts are random; merges are learned from the same texts without splitting them, so that a part that is too long or too short shows. Exit code 77:
the package is missing.
"""

import collections
import json
import pathlib
import random
import struct
import subprocess
import sys

try:
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers
except ImportError:
    sys.exit(77)

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent.parent / folder) for folder in ("cli", "serve", "support")]
import tiny_models  # noqa: E402
from scratch import scratch  # noqa: E402
from scripted import bytes_as_letters  # noqa: E402

SHORT = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
CASED = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}%s]*[\p{Ll}\p{Lm}\p{Lo}\p{M}%s]+" + SHORT + r"?|[^\r\n\p{L}\p{N}]?"
         r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}%s]+[\p{Ll}\p{Lm}\p{Lo}\p{M}%s]*" + SHORT + "?|")
TAIL = r"\s*[\r\n]+|\s+(?!\S)|\s+"
GPT4O = CASED.replace("%s", "") + r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|" + TAIL
QWEN2 = SHORT + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + TAIL
EXPRESSIONS = {
    "kimi-k2": [r"[\p{Han}]+|" + CASED.replace("%s", r"&&[^\p{Han}]") + r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + TAIL],
    "superbpe": [r"\p{N}+", r"(?=(\d{3})+(?!\d))"],
    "qwen35": [SHORT + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|" + TAIL],
    "tiny_aya": [r"\d{1,3}(?=(?:\d{3})*\b)", GPT4O],
    "kanana2": [GPT4O],
    "f2llmv2": [QWEN2],
    "laguna": [r"[^\n]+|[\n]+", QWEN2],
    "seed-coder": [SHORT + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}" "\r\n" r"]+|\s*[" "\r\n" r"]+|\s+(?!\S)|\s+"],
    "bailingmoe": [r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"],
    "exaone-moe": [SHORT + r"|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+"],
    "jais-2": [SHORT + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|"
               r"\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1}"],
    "deepseek-llm": ["[\r\n]", r"\s?[\p{Lu}\p{Ll}\p{Lt}]+", r"\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+", r"\s+$",
                     "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+", r"\p{N}+"],
}
PARTS = ["a", "b", "s", "t", "ll", "ve", "re", "A", "B", "Z", "\u00e9", "\u00df", "\u0130", "\u0131", "'", "\u2019", " ", " ", "  ", "\n", "\r\n", "\t", "\u2003",
         "\u3000", "1", "2", "23", "456", "7890", "\u0663", "\u00bd", "\u00b2", "\u4e2d", "\u6587\u5b57", "\u3041", "\u30ab", "\ud55c", "\uae00", "\u0e01",
         "\u0939\u093f", "\u05d0", "\u0301", ".", ",", "!", "?", "-", "_", "(", "/", "\\", "$", "+", "<", "=", "^", "|", "\u2026", "\u201c", "\uff0c", "\U0001f600", "\u20ac"]


def learn(texts, count):
    """Words and merges of a vocabulary that ignores where words end."""
    words, merges = tiny_models.alphabet(), []
    known, corpus = set(words), [list(bytes_as_letters(t)) for t in texts]
    for _ in range(count):
        pairs = collections.Counter(p for t in corpus for p in zip(t, t[1:]))
        best = next((p for p, _ in pairs.most_common() if "".join(p) not in known), None)
        if best is None:
            break
        known.add("".join(best))
        words.append("".join(best))
        merges.append(best)
        for i, text in enumerate(corpus):
            joined = []
            for piece in text:
                if joined and (joined[-1], piece) == best:
                    joined[-1] += piece
                else:
                    joined.append(piece)
            corpus[i] = joined
    return words, merges


def gguf(name, words, merges):
    text = lambda value: struct.pack("<Q", len(value.encode())) + value.encode()
    array = lambda values: struct.pack("<IIQ", 9, 8, len(values)) + b"".join(map(text, values))
    keys = [text("tokenizer.ggml.model") + struct.pack("<I", 8) + text("gpt2"), text("tokenizer.ggml.pre") + struct.pack("<I", 8) + text(name),
            text("tokenizer.ggml.tokens") + array(words), text("tokenizer.ggml.merges") + array([" ".join(m) for m in merges]),
            text("general.architecture") + struct.pack("<I", 8) + text("llama")]
    return b"GGUF" + struct.pack("<IQQ", 3, 0, len(keys)) + b"".join(keys)


def main():
    r = random.Random(11)
    texts = ["".join(r.choice(PARTS) for _ in range(r.randint(1, 20))) for _ in range(300)] + ["1234567 12 1234\u00b2123", " " * 700 + "b", "IT'S don't", "x y z  ab"]
    words, merges = learn(texts, 500)
    wrong = 0
    with scratch() as folder:
        for name, expressions in EXPRESSIONS.items():
            (folder / "m.gguf").write_bytes(gguf(name, words, merges))
            peer = Tokenizer(models.BPE({w: i for i, w in enumerate(words)}, merges))
            peer.pre_tokenizer = pre_tokenizers.Sequence([*(pre_tokenizers.Split(Regex(e), "isolated") for e in expressions),
                                                          pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
            for at in range(0, len(texts), 20):
                whole = "|".join(texts[at:at + 20])
                done = subprocess.run([sys.argv[1], "tokenize", str(folder / "m.gguf"), "-", "--json", "--no-special"], input=whole.encode(),
                                      capture_output=True, timeout=120, check=False)
                assert done.returncode == 0, f"{name}: {done.stderr.decode()}"
                made, expected = json.loads(done.stdout)["ids"], peer.encode(whole).ids
                if made != expected:
                    first = next(i for i, (a, b) in enumerate(zip(made, expected)) if a != b)
                    wrong += 1
                    print(f"{name}: {[words[i] for i in made[first - 2:first + 4]]}, not {[words[i] for i in expected[first - 2:first + 4]]}")
            print(f"{name}: compared", flush=True)
    assert wrong == 0, wrong


if __name__ == "__main__":
    main()
