"""sardonyx.speech.VoiceDetector, by networks whose probability is the loudness of a chunk and the state, which begins with zeros and stays:
intervals equal to those of faster-whisper."""

import json
import sys
import wave
from pathlib import Path

import numpy as np
import pytest

import sardonyx
from sardonyx.speech import Transcriber, VoiceDetector

TESTS = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TESTS / folder) for folder in ("cli", "speech")]
import tiny_models  # noqa: E402
from record_voice import probabilities  # noqa: E402

onnx = pytest.importorskip("onnx")
helper, FLOAT = onnx.helper, onnx.TensorProto.FLOAT


def network(path, form):
    """`form`: "sequence", as faster-whisper's, "state" as Silero's 5 and 6, "old" as its 4."""
    context = 0 if form == "old" else 64
    value, tensor = helper.make_tensor_value_info, onnx.numpy_helper.from_array
    constants = [tensor(np.array([context]), "from"), tensor(np.array([context + 512]), "to"), tensor(np.array([1]), "axis")]
    nodes = [helper.make_node("Abs", ["input"], ["loud"]), helper.make_node("Slice", ["loud", "from", "to", "axis"], ["chunk"]),
             helper.make_node("ReduceMax", ["chunk"], ["loudest"], axes=[1], keepdims=int(form != "sequence")),
             helper.make_node("ReduceSum", ["state" if form == "state" else "c"], ["before"], keepdims=0),
             helper.make_node("Add", ["loudest", "before"], ["output"])]
    sound = value("input", FLOAT, ["chunks", 576] if form == "sequence" else ["batch", "samples"])
    states = [("state", "stateN", [2, "batch", 128])] if form == "state" else [(s, f"{s}n", [1 if form == "sequence" else 2, 1, 64]) for s in "hc"]
    nodes += [helper.make_node("Identity", [a], [b]) for a, b, _ in states]
    inputs = [sound, *(value(a, FLOAT, shape) for a, _, shape in states)] + ([] if form == "sequence" else [value("sr", onnx.TensorProto.INT64, [])])
    graph = helper.make_graph(nodes, "voice", inputs, [value("output", FLOAT, None), *(value(b, FLOAT, shape) for _, b, shape in states)], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
    return VoiceDetector(path, providers=["CPUExecutionProvider"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("voice")
    tiny_models.write_served(made, 64)
    return made


@pytest.mark.parametrize("form", ["sequence", "state", "old"])
def test_intervals_are_those_of_faster_whisper(folder, form):
    detector = network(folder / f"{form}.onnx", form)
    cases = json.loads((TESTS / "speech" / "voice_answers.json").read_text())["cases"]
    for case in cases if form == "sequence" else cases[::9]:
        sound = np.repeat(probabilities(case["seed"]), 512)[: case["samples"]]
        found = detector.detect(sound, **case["settings"])
        assert [[round(s * 16000), round(e * 16000)] for s, e in found] == case["ranges"], case


def sound_of(folder, samples):
    path = folder / "sound.wav"
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, 16000, 0, "NONE", ""))
        file.writeframes(np.round(samples * 32767).astype("<i2").tobytes())
    return path


def test_sources_are_equal(folder):
    detector = network(folder / "any.onnx", "sequence")
    samples = np.concatenate([np.zeros(48000), np.full(16000, 0.75), np.zeros(64000)])
    path = sound_of(folder, samples)
    heard = [(2.576, 4.4)]  # from the chunk in which it begins, with 0.4 s on each side
    assert detector.detect(samples) == detector.detect(path) == detector.detect(path.read_bytes()) == heard
    assert len(detector.detect(np.repeat(samples, 2), rate=32000)) == 1
    for silent in (np.zeros(0), np.zeros(1), np.zeros(100000), np.full(600, np.nan)):
        assert detector.detect(silent) == []


def test_only_speech_is_transcribed(folder):
    """Twice nearly one second, 9 s apart; the model says "hello world" from 0 to 0.5 s in each window of one second."""
    detector, transcriber = network(folder / "any.onnx", "sequence"), Transcriber(folder / "whisper")
    samples = np.repeat([0, 0.75, 0, 0.75, 0], np.array([150, 31, 280, 31, 60]) * 512)
    tight = {"padding": 0.0, "min_silence": 0.1}
    spoken = detector.detect(samples, **tight)
    assert spoken == [(4.8, 5.792), (14.752, 15.744)]
    said = transcriber.transcribe(samples, voice=detector, voice_settings=tight)
    assert said.duration == len(samples) / 16000
    assert [(round(s.start, 3), round(s.end, 3)) for s in said.segments] == [(4.8, 5.3), (14.76, 15.26)]
    timed = transcriber.transcribe(samples, voice=detector, voice_settings=tight, word_timestamps=True)
    assert [(round(w.start, 3), w.text) for s in timed.segments for w in s.words][:2] == [(4.8, "hello"), (5.0, " world")]
    assert all(s.start == s.words[0].start and s.end == s.words[-1].end for s in timed.segments)
    silent = transcriber.transcribe(np.zeros(160000), voice=detector)
    assert silent.segments == [] and silent.duration == 10 and silent.text == ""


def test_what_is_refused(folder):
    detector = network(folder / "any.onnx", "sequence")
    for wrong in ({"threshold": 2}, {"padding": -1}, {"max_speech": 0.1}, {"min_silence": float("nan")}):
        with pytest.raises(sardonyx.InvalidArgument, match=next(iter(wrong))):
            detector.detect(np.zeros(16), **wrong)
    with pytest.raises(sardonyx.NotImplemented, match="Silero"):
        VoiceDetector(folder / "whisper" / "encoder_model.onnx")
    with pytest.raises(sardonyx.Error):
        VoiceDetector(folder / "none.onnx")
    with pytest.raises(TypeError):
        detector.detect(np.zeros(16), volume=3)
