"""Writes voice_answers.json: the intervals that faster-whisper finds in random probabilities of speech. record_voice.py WHEEL FILE

WHEEL: of the package faster-whisper, which is not needed to compare: tests/python/speech/test_voice.py does that.
"""

import json
import sys
import types
import zipfile

import numpy as np

CASES = [
    {},
    {"threshold": 0.6, "min_silence": 0.5, "padding": 0.1},
    {"threshold": 0.3, "silence_threshold": 0.05, "min_silence": 0.2, "padding": 0.0, "min_speech": 0.3},
    {"max_speech": 6.0, "min_silence": 1.0},
    {"max_speech": 2.0, "min_silence": 0.5, "padding": 0.05},
    {"min_silence": 0.0, "padding": 0.03},
]
SOUNDS = 8
USUAL = {"threshold": 0.5, "silence_threshold": None, "min_speech": 0, "max_speech": float("inf"), "min_silence": 2, "padding": 0.4}


def probabilities(seed):
    """Of chunks: speech and pauses of random lengths with noise, in steps that 16-bit sound can hold."""
    random = np.random.RandomState(seed)
    parts = []
    while sum(p.size for p in parts) < 700:
        level, length = random.choice([0.05, 0.3, 0.45, 0.55, 0.9]), random.randint(1, 90)
        parts.append(level + 0.2 * random.randn(length))
    return np.round(np.clip(np.concatenate(parts), 0, 1) * 32767) / 32768


def vad_of(wheel):
    stub, utils = types.ModuleType("faster_whisper"), types.ModuleType("faster_whisper.utils")
    utils.get_assets_path = lambda: ""
    sys.modules.update({"faster_whisper": stub, "faster_whisper.utils": utils})
    module = types.ModuleType("vad")
    sys.modules["vad"] = module
    exec(zipfile.ZipFile(wheel).read("faster_whisper/vad.py"), module.__dict__)
    return module


def main():
    vad, answers = vad_of(sys.argv[1]), []
    for settings in CASES:
        for seed in range(SOUNDS):
            p = probabilities(seed)
            samples = 512 * p.size - 512 // 2 * (seed % 2)
            # The package's network would see one chunk of silence more behind a whole last one.
            vad.get_vad_model = lambda: lambda padded: np.pad(p, (0, padded.size // 512 - p.size))
            s = {**USUAL, **settings}
            theirs = {"threshold": s["threshold"], "neg_threshold": s["silence_threshold"], "min_speech_duration_ms": s["min_speech"] * 1000,
                      "max_speech_duration_s": s["max_speech"], "min_silence_duration_ms": s["min_silence"] * 1000,
                      "speech_pad_ms": s["padding"] * 1000}
            found = vad.get_speech_timestamps(np.zeros(samples, np.float32), vad.VadOptions(**theirs))
            answers.append({"settings": settings, "seed": seed, "samples": samples, "ranges": [[s["start"], s["end"]] for s in found]})
    lines = ",\n".join(json.dumps(a) for a in answers)
    name = sys.argv[1].rsplit("/", 1)[-1].split("-py3")[0]
    with open(sys.argv[2], "w") as file:
        file.write(f'{{"made_by": "{name}", "cases": [\n{lines}\n]}}\n')
    print(len(answers), "cases", sum(len(a["ranges"]) for a in answers), "ranges")


if __name__ == "__main__":
    main()
