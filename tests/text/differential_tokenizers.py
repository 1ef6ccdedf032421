"""Tokenizers against the library of that name, on texts and configurations that chance makes: differential_tokenizers.py PROGRAM

PROGRAM is sdx_tokenize_lines. Each round takes a tokenizer.json of SDX_TEST_MODELS, or puts one together from random components, and compares
ids, tokens, offsets, type ids, masks, words, sequences, overflowing parts and decodings of random texts. Exit code 77 without the package
`tokenizers`. Where the library itself panics, an error or any result will do.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import unicodedata
from pathlib import Path

os.environ["TOKENIZERS_PARALLELISM"] = "false"
try:
    from tokenizers import Tokenizer
except ImportError:
    print("skipped: the package tokenizers is not installed")
    sys.exit(77)

WORDS = ("the quick brown fox jumps over lazy dogs and 42 cats don't we'll I'VE they're U.S.A. http://example.org/a?b=c foo_bar "
         "naïve café Ångström ﬁne ① ½ ² Straße İstanbul ΑΒΓ ΣΑΣ привет мир שלום مرحبا हिन्दी ไทย 日本語 中文字符 한국어 カタカナ ｶﾞ ー 👩‍👩‍👧‍👦 🏳️‍🌈 "
         "e\u0301 n\u0303 \u1112\u1161\u11ab ǅ ſ 'ſ K Ω \u00ad \u200b \u200d \ufeff \ufffd ▁ ▁▁ Ġ <s> </s> [CLS] [SEP] [UNK] <unk> <|x|> Hello "
         "HELLO hello").split(" ")
SPACES = [" ", " ", " ", "  ", "\n", "\t", "\r\n", "\n\n", "\u00a0", "\u3000", "   ", ""]
ASSIGNED = [c for c in range(1, 0x30000) if unicodedata.category(chr(c)) not in ("Cn", "Cs", "Co")]


def text_of(r):
    kind = r.random()
    if kind < 0.03:
        return ""
    if kind < 0.08:
        return r.choice("a é中👍 \n.'0") * r.randint(1, 80)
    parts = []
    for _ in range(r.randint(1, 12)):
        pick = r.random()
        if pick < 0.6:
            parts.append(r.choice(WORDS))
        elif pick < 0.8:
            parts.append("".join(r.choice("abcdefgh ABC.,!?-'0123456789") for _ in range(r.randint(1, 8))))
        else:
            parts.append("".join(chr(r.choice(ASSIGNED)) for _ in range(r.randint(1, 4))))
        parts.append(r.choice(SPACES))
    return "".join(parts)


REGEXES = [r"\s+", r"\d", r"\p{L}+", r"[aeiou]", r"\w+|[^\w\s]+", r"(\p{L})\1", r" ?\p{N}{1,3}", r"(?<=a)b", r"\p{Lu}", r"[^\s]+\s?",
           r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
           r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
           r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
           r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+",
           "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|"
           "\\s+(?!\\S)|\\s+"]
BEHAVIORS = ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"]


def flag(r):
    return r.random() < 0.5


def pattern(r):
    return {"Regex": r.choice(REGEXES)} if flag(r) else {"String": r.choice([" ", "a", "▁", "th", "é", ".", "  "])}


def normalizer(r, depth=0):
    kind = r.choice(["BertNormalizer", "Strip", "StripAccents", "NFC", "NFD", "NFKC", "NFKD", "Lowercase", "Nmt", "Replace", "Prepend",
                     "ByteLevel"] + ["Sequence"] * (3 if depth == 0 else 0))
    if kind == "BertNormalizer":
        return {"type": kind, "clean_text": flag(r), "handle_chinese_chars": flag(r), "strip_accents": r.choice([None, True, False]),
                "lowercase": flag(r)}
    if kind == "Strip":
        return {"type": kind, "strip_left": flag(r), "strip_right": flag(r)}
    if kind == "Replace":
        return {"type": kind, "pattern": pattern(r), "content": r.choice(["", " ", "▁", "xy", "é"])}
    if kind == "Prepend":
        return {"type": kind, "prepend": r.choice(["▁", "ab", "é"])}
    if kind == "Sequence":
        return {"type": kind, "normalizers": [normalizer(r, 1) for _ in range(r.randint(0, 3))]}
    return {"type": kind}


def pre_tokenizer(r, depth=0):
    kind = r.choice(["BertPreTokenizer", "ByteLevel", "CharDelimiterSplit", "Metaspace", "Whitespace", "WhitespaceSplit", "Split", "Split",
                     "Punctuation", "Digits", "UnicodeScripts", "FixedLength"] + ["Sequence"] * (4 if depth == 0 else 0))
    if kind == "ByteLevel":
        return {"type": kind, "add_prefix_space": flag(r), "trim_offsets": flag(r), "use_regex": flag(r)}
    if kind == "CharDelimiterSplit":
        return {"type": kind, "delimiter": r.choice(" a.é")}
    if kind == "Metaspace":
        return {"type": kind, "replacement": r.choice("▁_"), "prepend_scheme": r.choice(["first", "never", "always"]), "split": flag(r)}
    if kind == "Split":
        return {"type": kind, "pattern": pattern(r), "behavior": r.choice(BEHAVIORS), "invert": flag(r)}
    if kind == "Punctuation":
        return {"type": kind, "behavior": r.choice(BEHAVIORS)}
    if kind == "Digits":
        return {"type": kind, "individual_digits": flag(r)}
    if kind == "FixedLength":
        return {"type": kind, "length": r.randint(1, 6)}
    if kind == "Sequence":
        return {"type": kind, "pretokenizers": [pre_tokenizer(r, 1) for _ in range(r.randint(1, 3))]}
    return {"type": kind}


def decoder(r, depth=0):
    kind = r.choice(["BPEDecoder", "ByteLevel", "WordPiece", "Metaspace", "CTC", "Replace", "Fuse", "Strip", "ByteFallback"]
                    + ["Sequence"] * (3 if depth == 0 else 0))
    if kind == "BPEDecoder":
        return {"type": kind, "suffix": "</w>"}
    if kind == "ByteLevel":
        return {"type": kind, "add_prefix_space": flag(r), "trim_offsets": flag(r), "use_regex": flag(r)}
    if kind == "WordPiece":
        return {"type": kind, "prefix": "##", "cleanup": flag(r)}
    if kind == "Metaspace":
        return {"type": kind, "replacement": "▁", "prepend_scheme": r.choice(["first", "never", "always"]), "split": True}
    if kind == "CTC":
        return {"type": kind, "pad_token": "a", "word_delimiter_token": "|", "cleanup": flag(r)}
    if kind == "Replace":
        return {"type": kind, "pattern": pattern(r), "content": r.choice(["", " ", "x"])}
    if kind == "Strip":
        return {"type": kind, "content": r.choice(" ae"), "start": r.randint(0, 2), "stop": 0}
    if kind == "Sequence":
        return {"type": kind, "decoders": [decoder(r, 1) for _ in range(r.randint(1, 3))]}
    return {"type": kind}


def byte_chars():
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [b for b in range(256) if b not in shown]
    return [*map(chr, shown), *(chr(256 + i) for i in range(len(rest)))]


def letters(r):
    base = list("abcdefghijklmnopqrstuvwxyzABCTHI0123456789.,!?'- ▁") + ["é", "中", "日", "本", "👍", "\u0301", "Ġ", "한"]
    if flag(r):
        base += [c for c in byte_chars() if c not in base]
    return base


def model(r):
    kind = r.choice(["BPE", "BPE", "BPE", "WordPiece", "WordLevel", "Unigram"])
    if kind == "Unigram":
        vocab = [["<unk>", 0.0]] + [[c, -8.0 - r.random()] for c in letters(r)]
        vocab += [[w, -3.0 - 6 * r.random()] for w in sorted({r.choice(WORDS) + r.choice(["", "s"]) for _ in range(40)}) if w]
        vocab += [["▁" + w, -2.0 - 6 * r.random()] for w in ("the", "a", "fox", "th", "qu", "do")]
        seen, unique = set(), []
        for token, score in vocab:
            if token not in seen:
                seen.add(token)
                unique.append([token, score])
        fallback = flag(r)
        if fallback:
            unique += [["<0x%02X>" % b, -12.0] for b in range(256)]
        return {"type": kind, "unk_id": 0, "vocab": unique, "byte_fallback": fallback}
    tokens = ["[UNK]", *letters(r)]
    if kind in ("WordPiece", "WordLevel"):
        tokens += [w for w in WORDS if w]
        if kind == "WordPiece":
            tokens += ["##" + t for t in tokens[1:]]
        vocab = {t: i for i, t in enumerate(dict.fromkeys(tokens))}
        out = {"type": kind, "unk_token": "[UNK]", "vocab": vocab}
        if kind == "WordPiece":
            out |= {"continuing_subword_prefix": "##", "max_input_chars_per_word": r.choice([5, 100])}
        return out
    prefix, suffix = r.choice([("", ""), ("", ""), ("##", ""), ("", "</w>")])
    tokens = list(dict.fromkeys(tokens))
    symbols = tokens[1:]
    if prefix:
        tokens += [prefix + s for s in symbols]
    if suffix:
        tokens += [s + suffix for s in symbols]
    known, merges = set(tokens), []
    for _ in range(r.randint(0, 150)):
        a, b = r.choice(tokens[1:]), r.choice(tokens[1:])
        if prefix and not b.startswith(prefix) or suffix and a.endswith(suffix):
            continue
        joined = a + b[len(prefix):]
        if len(joined) > 12 or "[UNK]" in joined:
            continue
        merges.append([a, b])
        if joined not in known:
            known.add(joined)
            tokens.append(joined)
    fallback = flag(r)
    if fallback:
        tokens += ["<0x%02X>" % b for b in range(256)]
    return {"type": kind, "dropout": None, "unk_token": r.choice([None, "[UNK]", "[UNK]"]), "continuing_subword_prefix": prefix or None,
            "end_of_word_suffix": suffix or None, "fuse_unk": flag(r), "byte_fallback": fallback, "ignore_merges": flag(r),
            "vocab": {t: i for i, t in enumerate(tokens)}, "merges": merges}


def post_processor(r, size, depth=0):
    kind = r.choice(["RobertaProcessing", "BertProcessing", "ByteLevel", "TemplateProcessing"])
    if kind == "ByteLevel":
        return {"type": kind, "add_prefix_space": flag(r), "trim_offsets": flag(r), "use_regex": True}
    if kind == "TemplateProcessing":
        cls, sep = {"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"SpecialToken": {"id": "[SEP]", "type_id": r.randint(0, 1)}}
        a, b = {"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": r.randint(0, 2)}}
        return {"type": kind, "single": r.choice([[a], [cls, a], [cls, a, sep]]), "pair": r.choice([[a, b], [cls, a, sep, b, sep], [b, sep, a]]),
                "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [size], "tokens": ["[CLS]"]},
                                   "[SEP]": {"id": "[SEP]", "ids": [size + 1, size], "tokens": ["[SEP]", "[CLS]"]}}}
    out = {"type": kind, "sep": ["[SEP]", size + 1], "cls": ["[CLS]", size]}
    if kind == "RobertaProcessing":
        out |= {"trim_offsets": flag(r), "add_prefix_space": flag(r)}
    return out


def configuration(r):
    m = model(r)
    size = len(m["vocab"])
    added = [{"id": size + i, "content": c, "single_word": flag(r), "lstrip": flag(r), "rstrip": flag(r), "normalized": flag(r),
              "special": flag(r)} for i, c in enumerate(["[CLS]", "[SEP]", *r.sample(["<s>", "</s>", "Hello", "hello", "中文", "<|x|>", "fox"],
                                                                                       r.randint(0, 4))])]
    out = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": normalizer(r) if flag(r) else None,
           "pre_tokenizer": pre_tokenizer(r) if r.random() < 0.85 else None, "post_processor": post_processor(r, size) if flag(r) else None,
           "decoder": decoder(r) if r.random() < 0.8 else None, "model": m}
    if r.random() < 0.3:
        out["truncation"] = {"direction": r.choice(["Left", "Right"]), "max_length": r.randint(5, 20), "stride": r.randint(0, 2),
                             "strategy": r.choice(["LongestFirst", "LongestFirst", "OnlyFirst", "OnlySecond"])}
    if r.random() < 0.3:
        out["padding"] = {"strategy": r.choice(["BatchLongest", {"Fixed": 12}]), "direction": r.choice(["Left", "Right"]),
                          "pad_to_multiple_of": r.choice([None, 4]), "pad_id": 3, "pad_type_id": 1, "pad_token": "[PAD]"}
    return json.dumps(out)


def described(e, parts=True):
    out = {"ids": e.ids, "tokens": e.tokens, "offsets": [list(o) for o in e.offsets], "type_ids": e.type_ids,
           "special_tokens_mask": e.special_tokens_mask, "attention_mask": e.attention_mask,
           "word_ids": [-1 if w is None else w for w in e.word_ids], "sequence_ids": [-1 if s is None else s for s in e.sequence_ids]}
    if parts:
        out["overflowing"] = [described(o, False) for o in e.overflowing]
    return out


def expected(t, ask):
    """What the library answers; an error's text; None where it panics."""
    try:
        if "ids" in ask:
            return {"decoded": t.decode(ask["ids"], False), "decoded_skip": t.decode(ask["ids"], True)}
        return described(t.encode(ask["text"], ask.get("pair"), add_special_tokens=ask["special"]))
    except BaseException as e:  # a panic is not an Exception
        if isinstance(e, KeyboardInterrupt):
            raise
        return None if "Panic" in type(e).__name__ else str(e)


def load(source):
    try:
        return Tokenizer.from_file(source["load"]) if "load" in source else Tokenizer.from_str(source["json"])
    except BaseException as e:
        if isinstance(e, KeyboardInterrupt):
            raise
        return None


def is_left_to_chance(t, source):
    """Added tokens that read the same after normalization, or as nothing: the library takes one or the other, or panics."""
    if "load" in source or t.normalizer is None:
        return False
    texts = [t.normalizer.normalize_str(a["content"]) for a in json.loads(source["json"])["added_tokens"] if a["normalized"]]
    return "" in texts or len(set(texts)) < len(texts)


class Program:
    def __init__(self, path):
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8")

    def ask(self, line):
        self.process.stdin.write(json.dumps(line) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            print(f"the program ended, asked {json.dumps(line)[:4000]}")
            raise SystemExit(1)
        return json.loads(answer)


def difference(want, got):
    if want is None:
        return None
    if isinstance(want, str):
        return None if "error" in got else f"no error, but the library says: {want}"
    if "error" in got:
        return "error: " + got["error"]
    for key, value in want.items():
        if key == "overflowing":
            mine = [{k: v for k, v in part.items() if k != "overflowing"} for part in got[key]]
            if mine != value:
                return f"overflowing: {len(mine)} parts, not {len(value)}, or others"
        elif got[key] != value:
            return f"{key}: {got[key]}\n    expected {value}"
    return None


def sources(r):
    models = os.environ.get("SDX_TEST_MODELS")
    files = sorted(str(p) for p in Path(models, "tokenizers").rglob("tokenizer.json")) if models else []
    while True:
        yield {"load": r.choice(files)} if files and r.random() < 0.3 else {"json": configuration(r)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--inputs", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    r = random.Random(arguments.seed)
    program = Program(arguments.program)
    sys.stderr = open(os.devnull, "w")  # panics write there
    os.dup2(sys.stderr.fileno(), 2)
    done = panics = refused = wrong = 0
    for source in sources(r):
        if done >= arguments.inputs:
            break
        t, answer = load(source), program.ask(source)
        if t is None or "error" in answer:
            refused += 1
            if (t is None) != ("error" in answer):
                wrong += 1
                print("loading:", answer, "library:", "refuses" if t is None else "loads", json.dumps(source)[:3000])
            continue
        if is_left_to_chance(t, source):
            continue
        for _ in range(40):
            ask = {"text": text_of(r), "special": flag(r)}
            if r.random() < 0.15:
                ask = {"ids": [r.randint(0, t.get_vocab_size() + 3) for _ in range(r.randint(0, 30))]}
            elif r.random() < 0.15:
                ask["pair"] = text_of(r)
            want = expected(t, ask)
            done += 1
            panics += want is None
            bad = difference(want, program.ask(ask))
            if bad:
                wrong += 1
                if wrong <= 20:
                    shown = source.get("load") or source["json"]
                    print(f"{json.dumps(ask, ensure_ascii=False)}\n  {bad}\n  {shown[:200]} … {shown[-900:] if 'json' in source else ''}", flush=True)
    print(f"{done} inputs, {refused} configurations refused by both, {panics} panics of the library, {wrong} differences")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
