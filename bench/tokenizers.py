"""Tokenizers beside the package `tokenizers`, one thread each, in turns: tokenizers.py BENCH_TOKENIZERS FOLDER TEXT...

FOLDER has tokenizer.json files. Compares processor time, so that other work on the machine matters less. Prints a table: loading in ms, megabytes
of text per second, and the ratio; a row is marked where the numbers of tokens differ.
"""

import json
import subprocess
import sys
from pathlib import Path

PEER = """
import json, sys, time
from tokenizers import Tokenizer
start = time.process_time(); t = Tokenizer.from_file(sys.argv[1]); out = {"load_ms": (time.process_time() - start) * 1e3}
t.no_truncation(); t.no_padding()
for path in sys.argv[3:]:
    data, texts, at = open(path, "rb").read(), [], 0
    while at < len(data):
        end = min(len(data), at + 10000)
        while end < len(data) and data[end:end + 1] != b"\\n":
            end += 1
        texts.append(data[at:end].decode())
        at = end
    best = 1e9
    for _ in range(int(sys.argv[2])):
        start = time.process_time()
        tokens = sum(len(t.encode(text)) for text in texts)
        best = min(best, time.process_time() - start)
    out[path] = [len(data) / best * 1e-6, tokens]
print(json.dumps(out))
"""
ROUNDS, TURNS = "2", 3


def best(results):
    out = {}
    for r in results:
        for key, value in r.items():
            if key == "load_ms":
                out[key] = min(out.get(key, value), value)
            else:
                out[key] = max(out.get(key, [0, 0]), value)
    return out


def main():
    program, folder, texts = sys.argv[1], Path(sys.argv[2]), sys.argv[3:]
    for path in sorted(folder.glob("*/tokenizer.json")):
        ours, theirs = [], []
        for _ in range(TURNS):
            ours.append(json.loads(subprocess.check_output([program, str(path), ROUNDS, *texts])))
            theirs.append(json.loads(subprocess.check_output([sys.executable, "-c", PEER, str(path), ROUNDS, *texts],
                                                             env={"TOKENIZERS_PARALLELISM": "false", "PATH": ""})))
        a, b = best(ours), best(theirs)
        cells = [f"{path.parent.name:24} load {a['load_ms']:6.1f} / {b['load_ms']:6.1f} ms"]
        for text in texts:
            mark = "" if a[text][1] == b[text][1] else " DIFFERENT TOKENS"
            cells.append(f"{Path(text).stem} {a[text][0]:6.1f} / {b[text][0]:5.2f} MB/s ({a[text][0] / b[text][0]:.1f}x){mark}")
        print("   ".join(cells), flush=True)


if __name__ == "__main__":
    main()
