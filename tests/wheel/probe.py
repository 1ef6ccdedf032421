"""probe.py MODEL FEED: what runs in the bare system: the wheel, NumPy and nothing else. Prints the results as JSON, and which shared libraries
are loaded that should be linked in. For every Python from 3.9 on."""

import json
import re
import sys

import numpy as np
import sardonyx as ort

LINKED_IN = re.compile(r"/lib(png|jpeg|openjp2|webp|sharpyuv|utf8proc|pcre2|yaml|fmt|xxhash)")

with open(sys.argv[2]) as file:
    feed = {k: np.array(v["data"], dtype=v["dtype"]) for k, v in json.load(file).items()}
session = ort.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
outputs = session.run(None, feed)
with open("/proc/self/maps") as maps:
    foreign = sorted({line.split()[-1] for line in maps if LINKED_IN.search(line)})
print(json.dumps({"python": sys.version.split()[0], "numpy": np.__version__, "sardonyx": ort.__version__, "foreign": foreign,
                  "outputs": [o.tolist() for o in outputs]}))
