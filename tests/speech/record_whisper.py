"""Writes whisper_answers.json: what transformers makes of the models of whisper_models.py. record_whisper.py FILE

Needs PyTorch and transformers 4.47 or newer (older ones go on from the second time of a pair), which are not needed to compare: transcribe.py does
that. The file names the versions.
"""

import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
import transformers
import whisper_models as wm
from transformers import GenerationConfig, WhisperConfig, WhisperFeatureExtractor, WhisperForConditionalGeneration

# Name, the model's settings and seed, seconds of sound and its seed, and what is asked for.
CASES = [
    ("short", dict(), 11, 2.0, 1, dict(language="en", task="transcribe", return_timestamps=True)),
    ("short in German", dict(), 11, 1.3, 2, dict(language="de", task="transcribe", return_timestamps=True)),
    ("short without times", dict(), 21, 1.7, 3, dict(language="fr", task="transcribe", return_timestamps=False)),
    ("short translated", dict(), 13, 2.0, 4, dict(language="de", task="translate", return_timestamps=True)),
    ("long", dict(), 14, 9.3, 5, dict(language="en", task="transcribe", return_timestamps=True)),
    ("long translated", dict(), 15, 13.77, 6, dict(language="fr", task="translate", return_timestamps=True)),
    ("long, wider", dict(width=64, heads=8, layers=3, positions=64), 16, 11.0, 7, dict(language="de", task="transcribe", return_timestamps=True)),
    ("long, 128 filters", dict(bins=128, seconds=4), 17, 15.5, 8, dict(language="en", task="transcribe", return_timestamps=True)),
    ("language heard", dict(), 18, 5.0, 9, dict(language=None, task="transcribe", return_timestamps=True)),
]
SCALE = 0.3  # of the logits: smaller ones mean fewer words, as the sum of all times is compared with the most probable word


def model_of(c, seed):
    config = WhisperConfig(**{k: v for k, v in c.items() if k not in ("model_type", "architectures")}, attn_implementation="eager")
    model = WhisperForConditionalGeneration(config)
    state = {k: torch.from_numpy(v) for k, v in wm.weights(c, seed, SCALE).items()}
    state["proj_out.weight"] = state["model.decoder.embed_tokens.weight"]
    missing, unexpected = model.load_state_dict(state, strict=False)
    assert not missing and not unexpected, (missing, unexpected)
    model.generation_config = GenerationConfig(**wm.generation_config(c))
    return model.eval()


def segments_of(found):
    """Without the second time of a pair that stands at a segment's end, and without segments that say nothing."""
    out = []
    for s in found:
        tokens = [int(t) for t in s["tokens"] if int(t) != wm.END]
        start, end = float(s["start"]), float(s["end"])
        if tokens[0] == wm.START:  # this version returns the prompt of short sounds as a part of their first segment
            tokens = tokens[4 if tokens[3] == wm.NO_TIMESTAMPS else 3:]
            start = (tokens[0] - wm.TIMES) * 0.02 if tokens[0] >= wm.TIMES else 0.0
        if len(tokens) > 2 and tokens[-1] >= wm.TIMES and tokens[-2] >= wm.TIMES:
            tokens.pop()
        text = bytes(t for t in tokens if t < wm.END).decode("utf-8", "replace")
        if end > start and text.strip():
            out.append({"start": round(start, 3), "end": round(end, 3), "tokens": tokens})
    return out


def answer(name, settings, seed, seconds, sound_seed, asked):
    c = wm.config(**settings)
    model = model_of(c, seed)
    extractor = WhisperFeatureExtractor(feature_size=c["num_mel_bins"], chunk_length=c["max_source_positions"] // 50)
    x = wm.sound(seconds, sound_seed).astype(np.float32) / 32768
    whole = x.size > extractor.n_samples
    inputs = extractor(x, sampling_rate=16000, return_tensors="pt", return_attention_mask=True, truncation=not whole,
                       padding="longest" if whole else "max_length")
    with torch.no_grad():
        got = model.generate(inputs.input_features, attention_mask=inputs.attention_mask, return_segments=True, **asked)
        heard = model.detect_language(inputs.input_features, num_segment_frames=2 * c["max_source_positions"]) if asked["language"] is None else None
    code = asked["language"] or next(k for k, v in wm.LANGUAGE.items() if v == int(heard[0]))
    return {"name": name, "config": settings, "weights": seed, "scale": SCALE, "seconds": seconds, "sound": sound_seed,
            "language": asked["language"], "heard": code, "translate": asked["task"] == "translate", "timestamps": asked["return_timestamps"],
            "whole": whole, "segments": segments_of(got["segments"][0])}


def main():
    answers = [answer(*case) for case in CASES]
    head = {"made_by": f"transformers {transformers.__version__}, PyTorch {torch.__version__}", "cases": answers}
    Path(sys.argv[1]).write_text(json.dumps(head, indent=1) + "\n")
    for a in answers:
        print(a["name"], a["heard"], len(a["segments"]), "segments", sum(len(s["tokens"]) for s in a["segments"]), "tokens")


if __name__ == "__main__":
    main()
