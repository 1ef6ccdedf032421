"""Features of sound beside the packages that define them: features.py SPEECH_FEATURES

Whisper's with transformers, Kaldi's with kaldi-native-fbank, each where it is installed (requirements.txt); NeMo's and resampling with their
formulas in NumPy, in double precision. Exit code 77 without NumPy.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import numpy as np
except ImportError:
    sys.exit(77)

PROGRAM = sys.argv[1]
failures = []


def ours(kind, settings, samples):
    done = subprocess.run([PROGRAM, kind, settings], input=np.asarray(samples, np.float32).tobytes(), capture_output=True, timeout=120)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.decode())
    return np.frombuffer(done.stdout, np.float32)


def compare(what, got, expected, tolerance=1e-4, rounded=0.0):
    """`rounded`: the share of numbers that may differ by up to a hundred times as much."""
    expected = np.asarray(expected)
    if got.size != expected.size:
        failures.append(f"{what}: {got.size} numbers, expected {expected.size}")
        return
    errors = np.abs(got.reshape(expected.shape) - expected) if got.size else np.zeros(1)
    error, share = float(errors.max()), float((errors > tolerance).mean())
    print(f"{what}: {expected.shape}, largest difference {error:.2e}, {share:.5f} of them above {tolerance}")
    if not (share <= rounded and error <= tolerance * (100 if rounded else 1)):
        failures.append(f"{what}: differs by {error}, {share} of the numbers by more than {tolerance}")


def sounds():
    random = np.random.RandomState(3)
    t = np.arange(16000 * 3) / 16000
    # With some noise: filters in which nothing is hold what the packages' float32 has rounded.
    yield "tones", 0.4 * np.sin(2 * np.pi * 440 * t) + 0.2 * np.sin(2 * np.pi * (300 + 900 * t) * t) + 0.02 * random.randn(t.size)
    yield "noise", 0.3 * random.randn(20011)
    yield "quiet", 1e-4 * random.randn(9999)
    yield "short", 0.5 * random.randn(801)
    speech = 0.2 * random.randn(16000 * 35) * (0.55 + 0.45 * np.sin(np.arange(16000 * 35) / 9000))
    yield "long", speech


def whisper(folder):
    try:
        from transformers import WhisperFeatureExtractor
    except ImportError:
        print("transformers is not installed: Whisper's features are not compared")
        return
    for bins in (80, 128):
        extractor = WhisperFeatureExtractor(feature_size=bins)
        extractor.save_pretrained(folder)
        for name, sound in sounds():
            sound = sound.astype(np.float32)
            fbank = extractor._np_extract_fbank_features
            padded = np.pad(sound, (0, max(0, 480000 - sound.size)))
            try:
                expected = fbank(padded[None], "cpu")[0]
            except TypeError:  # of older versions
                expected = fbank(padded[None])[0]
            compare(f"whisper {bins} {name}", ours("whisper", str(folder), sound), expected.T)


def slaney_filters(bins, fft, rate):
    """librosa.filters.mel, by Slaney's formulas."""
    def hertz(mel):
        return np.where(mel < 15, mel * 200 / 3, 1000 * np.exp(np.log(6.4) / 27 * (mel - 15)))

    top = 15 + np.log(rate / 2 / 1000) / (np.log(6.4) / 27)
    corners = hertz(np.linspace(0, top, bins + 2))
    at = np.arange(fft // 2 + 1) * rate / fft
    up = (at - corners[:-2, None]) / np.diff(corners)[:-1, None]
    down = (corners[2:, None] - at) / np.diff(corners)[1:, None]
    return np.maximum(0, np.minimum(up, down)) * (2 / (corners[2:] - corners[:-2]))[:, None]


def nemo_formula(x, bins):
    """AudioToMelSpectrogramPreprocessor with normalize="per_feature" and without dither."""
    x = np.concatenate([x[:1], x[1:] - 0.97 * x[:-1]])
    window = np.pad(np.hanning(400), 56)
    padded = np.pad(x, 256)
    frames = np.stack([padded[i * 160:i * 160 + 512] * window for i in range(x.size // 160)])
    power = np.abs(np.fft.rfft(frames)) ** 2
    logs = np.log(power @ slaney_filters(bins, 512, 16000).T + 2.0**-24)
    return (logs - logs.mean(0)) / (logs.std(0, ddof=1) + 1e-5)


def nemo(folder):
    for bins in (80, 128):
        (folder / "preprocessor_config.json").write_text(json.dumps(
            {"feature_extractor_type": "ParakeetFeatureExtractor", "feature_size": bins, "hop_length": 160, "n_fft": 512, "preemphasis": 0.97,
             "sampling_rate": 16000, "win_length": 400}))
        for name, sound in sounds():
            sound = sound.astype(np.float32)
            compare(f"nemo {bins} {name}", ours("nemo", str(folder), sound), nemo_formula(sound.astype(np.float64), bins))


def kaldi():
    try:
        import kaldi_native_fbank as knf
    except ImportError:
        print("kaldi-native-fbank is not installed: Kaldi's features are not compared")
        return
    cases = [("fbank", {"bins": 80}), ("fbank", {"bins": 23, "snip_edges": False, "scale": 32768.0}),
             ("fbank", {"bins": 40, "use_energy": True, "window": "hamming", "low": 0.0, "high": -400.0}), ("mfcc", {"bins": 23}),
             ("mfcc", {"bins": 40, "coefficients": 20, "use_energy": True, "lifter": 0.0, "remove_mean": False})]
    for kind, settings in cases:
        options = knf.FbankOptions() if kind == "fbank" else knf.MfccOptions()
        options.frame_opts.dither = 0
        options.frame_opts.samp_freq = 16000
        options.frame_opts.snip_edges = settings.get("snip_edges", True)
        options.frame_opts.window_type = settings.get("window", "povey")
        options.frame_opts.remove_dc_offset = settings.get("remove_mean", True)
        options.mel_opts.num_bins = settings["bins"]
        options.mel_opts.low_freq = settings.get("low", 20.0)
        options.mel_opts.high_freq = settings.get("high", 0.0)
        options.use_energy = settings.get("use_energy", False)
        if kind == "mfcc":
            options.num_ceps = settings.get("coefficients", 13)
            options.cepstral_lifter = settings.get("lifter", 22.0)
        for name, sound in sounds():
            if name == "quiet" and settings.get("scale", 1.0) == 1.0:
                continue  # near the least logarithm, float32 of the package is not exact to 1e-4
            sound = sound.astype(np.float32)
            computer = knf.OnlineFbank(options) if kind == "fbank" else knf.OnlineMfcc(options)
            computer.accept_waveform(16000, (sound * settings.get("scale", 1.0)).tolist())
            computer.input_finished()
            expected = np.array([computer.get_frame(i) for i in range(computer.num_frames_ready)])
            # The package transforms in float32: where a filter holds next to nothing of a frame, its logarithm is not exact to 1e-4.
            compare(f"{kind} {settings} {name}", ours(kind, json.dumps(settings), sound), expected, 1e-3 if kind == "mfcc" else 1e-4, 0.01)


def resampling():
    """Tones in the pass band stay what they are, and those above half the lower rate vanish: measured in dB."""
    for old, new in ((44100, 16000), (48000, 16000), (8000, 16000), (22050, 48000), (44101, 48000), (96000, 44100)):
        band = min(old, new) / 2
        for share in (0.01, 0.3, 0.6, 0.9):
            t = np.arange(old) / old
            got = ours("resample", f"{old}:{new}", np.sin(2 * np.pi * share * band * t))
            expected = np.sin(2 * np.pi * share * band * np.arange(got.size) / new)
            middle = slice(new // 4, -new // 4)
            error = 20 * np.log10(np.abs(got - expected)[middle].max())
            print(f"resample {old} to {new}, {share} of the band: {error:.1f} dB")
            if error > -58:  # the ripple of 0.01 dB
                failures.append(f"resample {old} to {new}: a tone at {share} of the band is off by {error:.1f} dB")
        if old > new:
            for share in (1.0, 1.1, 1.5):
                if share * band >= old / 2:
                    continue
                got = ours("resample", f"{old}:{new}", np.sin(2 * np.pi * share * band * np.arange(old) / old + 0.3))
                left = 20 * np.log10(np.abs(got[new // 4:-new // 4]).max() + 1e-12)
                print(f"resample {old} to {new}: {left:.1f} dB are left of a tone at {share} of the band")
                if left > -110:
                    failures.append(f"resample {old} to {new}: {left:.1f} dB are left of a tone at {share} of the band")


with tempfile.TemporaryDirectory() as place:
    whisper(Path(place))
    nemo(Path(place))
kaldi()
resampling()
for failure in failures:
    print("FAIL", failure)
sys.exit(1 if failures else 0)
