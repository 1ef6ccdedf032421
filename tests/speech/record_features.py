"""Prints the table of src/speech/features/features_test.cc: what the packages make of one sound. Needs transformers and kaldi-native-fbank."""

import importlib.metadata

import kaldi_native_fbank as knf
import numpy as np
from transformers import WhisperFeatureExtractor

i = np.arange(4000, dtype=np.int64)
x = (((i * i * 7 + i * 13) % 1001).astype(np.float32) / np.float32(1001) - np.float32(0.5)) * np.float32(0.5)
PLACES = [(0, 0), (0, 79), (3, 10), (7, 40), (12, 64), (20, 5), (22, 79)]


def show(kind, matrix, places=PLACES):
    print(f"// {kind}: {matrix.shape[0]} frames of {matrix.shape[1]}")
    for frame, column in places:
        column = min(column, matrix.shape[1] - 1)
        print(f'    {{"{kind}", {frame}, {column}, {matrix[frame, column]:.6f}F}},')


def kaldi(kind, **settings):
    options = knf.FbankOptions() if kind == "fbank" else knf.MfccOptions()
    options.frame_opts.dither = 0
    options.frame_opts.snip_edges = settings.get("snip_edges", True)
    options.mel_opts.num_bins = settings.get("bins", 80)
    if kind == "mfcc":
        options.num_ceps = 13
    computer = knf.OnlineFbank(options) if kind == "fbank" else knf.OnlineMfcc(options)
    computer.accept_waveform(16000, x.tolist())
    computer.input_finished()
    return np.array([computer.get_frame(n) for n in range(computer.num_frames_ready)])


for bins in (80, 128):
    show(f"whisper{bins}", WhisperFeatureExtractor(feature_size=bins)(x, sampling_rate=16000).input_features[0].T, [*PLACES, (26, 3), (2999, 79)])
show("fbank", kaldi("fbank"))
show("fbank, mirrored", kaldi("fbank", snip_edges=False))
show("mfcc", kaldi("mfcc", bins=23))
print({p: importlib.metadata.version(p) for p in ("transformers", "kaldi-native-fbank", "numpy")})
