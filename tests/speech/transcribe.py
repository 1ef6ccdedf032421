"""sdx transcribe on small random Whisper models: tokens and times equal to those of transformers. transcribe.py SDX

whisper_answers.json holds transformers' answers (record_whisper.py); each model is written in all forms in which optimum exports decoders. Exit code
77 without NumPy and onnx.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import numpy as np
    import onnx
    import whisper_models as wm
except ImportError:
    sys.exit(77)

sys.path[:0] = [str(Path(__file__).resolve().parent.parent / folder) for folder in ("serve", "support")]
from serve_process import Serve  # noqa: E402

SDX = sys.argv[1]
KINDS = {"merged": ("merged",), "pair": ("first", "later"), "plain": ("plain",), "weights": ("weights",)}
failures = []


def check(truth, what):
    if not truth:
        failures.append(what)
        print("FAIL", what)


def sdx(*words, **options):
    return subprocess.run([SDX, "transcribe", *map(str, words)], capture_output=True, timeout=300, **options)


def transcribed(*words, **options):
    done = sdx(*words, "--json", **options)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.decode())
    return json.loads(done.stdout)["files"][0]


# Without guards, as transformers decodes by itself.
BARE = ("--temperature", "0", "--no-previous-text", "--compression-ratio", "1e9", "--log-probability", "-1e9", "--no-speech", "1")


def compare(case, kind, folder, words):
    got = transcribed(folder.parent / "sound.wav", "-m", folder, *BARE, *words)
    what = f"{case['name']}, {kind}"
    check(got["language"] == case["heard"], f"{what}: language {got['language']}, expected {case['heard']}")
    check(abs(got["duration_s"] - case["seconds"]) < 1e-3, f"{what}: {got['duration_s']} s")
    segments, expected = got["segments"], case["segments"]
    if not case["whole"]:  # transformers also listens to the silence with which it fills the window
        check(segments != [], f"{what}: nothing")
        expected = expected[:len(segments)]
    check([s["tokens"] for s in segments] == [s["tokens"] for s in expected], f"{what}: tokens differ:\n  {segments}\n  {expected}")
    for mine, theirs in zip(segments, expected):
        # Ours never end behind the sound.
        end = min(theirs["end"], max(theirs["start"], case["seconds"]))
        check(abs(mine["start"] - theirs["start"]) < 2e-3 and (abs(mine["end"] - end) < 2e-3 or not case["timestamps"]),
              f"{what}: from {mine['start']} to {mine['end']}, expected {theirs['start']} to {end}")
    print(f"{what}: {len(segments)} segments, {sum(len(s['tokens']) for s in segments)} tokens")


def recorded(place):
    answers = json.loads((Path(__file__).parent / "whisper_answers.json").read_text())
    for case in answers["cases"]:
        here = place / case["name"].replace(" ", "_").replace(",", "")
        here.mkdir()
        c = wm.config(**case["config"])
        w = wm.weights(c, case["weights"], case["scale"])
        (here / "sound.wav").write_bytes(wm.wav(wm.sound(case["seconds"], case["sound"])))
        words = ["--language", case["language"]] if case["language"] else []
        words += ["--translate"] if case["translate"] else []
        words += [] if case["timestamps"] else ["--timestamps", "none"]
        for kind, decoders in KINDS.items():
            wm.write_folder(here / kind, c, w, decoders)
            compare(case, kind, here / kind, words)


def words(place):
    """openai-whisper's times of words, which windows after the first depend on."""
    for case in json.loads((Path(__file__).parent / "word_answers.json").read_text())["cases"]:
        here = place / case["name"].replace(" ", "_").replace(",", "")
        here.mkdir()
        c = wm.config(**case["config"])
        w = wm.weights(c, case["weights"], case["scale"])
        (here / "sound.wav").write_bytes(wm.wav(wm.sound(case["seconds"], case["sound"])))
        settings = {"max_length": case["max_length"], **({"alignment_heads": case["heads"]} if case["heads"] else {})}
        for kind, decoders in {**KINDS, "fused": ("fused",)}.items():
            wm.write_folder(here / kind, c, w, decoders, **settings)
            got = transcribed(here / "sound.wav", "-m", here / kind, *BARE, "--language", case["language"], "--timestamps", "word")["segments"]
            what = f"{case['name']}, {kind}"
            check([s["tokens"] for s in got] == [s["tokens"] for s in case["segments"]], f"{what}: tokens differ:\n  {got}\n  {case['segments']}")
            for mine, theirs in zip(got, case["segments"]):
                compare_words(what, mine, theirs, case["seconds"])
            print(f"{what}: {sum(len(s['words']) for s in got)} words")


def compare_words(what, mine, theirs, seconds):
    check([w["word"] for w in mine["words"]] == [w[0] for w in theirs["words"]], f"{what}: words differ:\n  {mine}\n  {theirs}")
    # Theirs are rounded to 0.01 s; ours do not end behind the sound.
    end = min(theirs["end"], max(theirs["start"], seconds))
    check(abs(mine["start"] - theirs["start"]) < 0.011 and abs(mine["end"] - end) < 0.011, f"{what}: {mine}\n  expected {theirs}")
    for m, (text, start, end, probability) in zip(mine["words"], theirs["words"]):
        check(abs(m["start"] - start) < 0.011 and abs(m["end"] - end) < 0.011 and abs(m["probability"] - probability) < 1e-3,
              f"{what}: {m}, expected {text!r} from {start} to {end}, {probability}")


def served(folder, sound):
    """The server takes such a folder for a speech model."""
    server = Serve(SDX, f"ears={folder}")
    try:
        check(server.get("/v2/models/ears").json()["platform"] == "sardonyx_speech", "served weights: no speech model")
        part = b'--b\r\nContent-Disposition: form-data; name='
        head = part + b'"model"\r\n\r\nears\r\n' + part + b'"file"; filename="a"\r\n\r\n'
        got = server.ask("POST", "/v1/audio/transcriptions", head + sound.read_bytes() + b"\r\n--b--\r\n",
                         {"Content-Type": "multipart/form-data; boundary=b"})
        check(got.status == 200 and got.json()["usage"]["seconds"] == 9.3, f"served weights: {got.body}")
    finally:
        check(server.end() == 0, "served weights: exit code")


def weights(place):
    """Weights of float16 stand for the same numbers as of float32; damaged files are refused by name."""
    c, sound = wm.config(), place / "long" / "sound.wav"
    rounded = {k: v.astype(np.float16).astype(np.float32) for k, v in wm.weights(c, 14, 0.3).items()}
    answers = []
    for name, dtype, shards in (("f32", "float32", False), ("f16", "float16", False), ("shards", "float16", True)):
        folder = place / "rounded" / name
        wm.write_folder(folder, c, rounded, ("weights",))
        (folder / "model.safetensors").write_bytes(wm.safetensors(rounded, dtype))
        if shards:
            (folder / "model.safetensors").unlink()
            names = sorted(rounded)
            parts = {"a.safetensors": names[::2], "b.safetensors": names[1::2]}
            for part, held in parts.items():
                (folder / part).write_bytes(wm.safetensors({n: rounded[n] for n in held}, dtype))
            index = {"weight_map": {n: part for part, held in parts.items() for n in held}}
            (folder / "model.safetensors.index.json").write_text(json.dumps(index))
        answers.append([s["tokens"] for s in transcribed(sound, "-m", folder, *BARE, "--language", "en")["segments"]])
    check(answers[0] == answers[1] == answers[2] != [], f"weights of float16: {answers}")
    served(place / "rounded" / "f16", sound)
    folder, name = place / "rounded" / "f32", "model.decoder.layers.1.fc2.weight"
    short = {**rounded, name: rounded[name][:, 1:]}
    cases = [({k: v for k, v in rounded.items() if k != name}, "lacks the tensor"), (short, "expected [32,64]"), ({}, "lacks the tensor")]
    for held, why in cases:
        (folder / "model.safetensors").write_bytes(wm.safetensors(held, "float32"))
        done = sdx(sound, "-m", folder)
        check(done.returncode == 1 and why.encode() in done.stderr and b"model.safetensors" in done.stderr, f"{why}: {done.stderr}")
    config = json.loads((folder / "config.json").read_text())
    (folder / "model.safetensors").write_bytes(wm.safetensors(rounded, "float32"))
    for key, value in (("activation_function", "relu"), ("scale_embedding", True), ("encoder_attention_heads", 5), ("encoder_layers", 0)):
        (folder / "config.json").write_text(json.dumps({**config, key: value}))
        done = sdx(sound, "-m", folder)
        check(done.returncode == 1 and (key.encode() in done.stderr or b"5 heads" in done.stderr), f"{key}: {done.stderr}")


def guards(place):
    """What keeps a random model, which talks nonsense, from being believed."""
    model, sound = place / "long" / "merged", place / "long" / "sound.wav"
    usual = transcribed(sound, "-m", model, "--language", "en", "--seed", "3")
    check(usual == transcribed(sound, "-m", model, "--language", "en", "--seed", "3"), "the same seed gives another answer")
    check(any(s["temperature"] > 0 for s in usual["segments"]), f"no window fell back to sampling: {usual['segments']}")
    check(all(s["temperature"] == 1.0 for s in usual["segments"] if s["avg_logprob"] < -1.0),
          f"an improbable text below the last temperature: {usual['segments']}")
    silent = transcribed(sound, "-m", model, "--language", "en", "--no-speech", "0", "--log-probability", "100")
    check(silent["segments"] == [] and silent["text"] == "", f"silence speaks: {silent['segments']}")


def hidden_attention(place):
    """Without attention that can be found, times of words are refused, and nothing else is."""
    here = place / "words"
    path = here / "plain" / "decoder_model.onnx"
    model = onnx.load(path)
    for node in model.graph.node:
        if node.op_type == "Softmax":  # a function of the same name elsewhere
            node.domain = "hidden"
    model.opset_import.append(onnx.helper.make_opsetid("hidden", 1))
    x = onnx.helper.make_node("Softmax", ["x"], ["y"], axis=-1)
    model.functions.append(onnx.helper.make_function("hidden", "Softmax", ["x"], ["y"], [x], [onnx.helper.make_opsetid("", 17)], ["axis"]))
    onnx.save(model, path)
    words = (here / "sound.wav", "-m", here / "plain", *BARE, "--language", "en")
    check(transcribed(*words)["segments"] != [], "hidden attention: nothing")
    refused = sdx(*words, "--timestamps", "word")
    check(refused.returncode == 1 and b"found that of 0" in refused.stderr, f"hidden attention: {refused.stderr}")


def hostile(place):
    model = place / "long" / "merged"
    bad = {"empty.wav": b"", "text.mp3": b"no sound at all", "half.wav": wm.wav(wm.sound(1, 1))[:5000], "head.flac": b"fLaC\0\0"}
    for name, content in bad.items():
        (place / name).write_bytes(content)
        done = sdx(place / name, "-m", model)
        check(done.returncode == 1 and name.encode() in done.stderr and b"error" in done.stderr, f"{name}: {done.returncode} {done.stderr}")
    for samples in (0, 1, 399):
        (place / "few.wav").write_bytes(wm.wav(np.zeros(samples, np.int16)))
        got = transcribed(place / "few.wav", "-m", model)
        check(got["duration_s"] == round(samples / 16000, 3), f"{samples} samples: {got}")
    (place / "slow.wav").write_bytes(wm.wav(wm.sound(3, 2), 44100))
    check(abs(transcribed(place / "slow.wav", "-m", model)["duration_s"] - 3 * 16000 / 44100) < 1e-3, "the rate is not that of the file")
    # One bad file of several: the others are done.
    done = sdx(place / "text.mp3", place / "few.wav", "-m", model, "--json")
    files = json.loads(done.stdout)["files"]
    check(done.returncode == 1 and files[0]["error"] and files[1]["error"] is None, f"{done.returncode} {files}")


def folders(place):
    """-o with --resume, in all formats, and standard input."""
    model, sound = place / "long" / "merged", place / "long" / "sound.wav"
    recordings = place / "recordings"
    recordings.mkdir()
    for name in ("a.wav", "b.wav"):
        (recordings / name).write_bytes(sound.read_bytes())
    (recordings / "notes.txt").write_text("no sound")
    for form, head in (("txt", ""), ("srt", "1\n00:00:0"), ("vtt", "WEBVTT\n\n00:00:0"), ("json", '{"file":')):
        done = sdx(recordings, "-m", model, "--language", "en", "--format", form, "-o", place / "out", "--temperature", "0")
        check(done.returncode == 0, done.stderr.decode())
        for name in ("a", "b"):
            check((place / "out" / f"{name}.{form}").read_text().startswith(head), f"{name}.{form}")
    kept = place / "out" / "a.srt"
    kept.write_text("kept")
    (place / "out" / "b.srt").unlink()
    done = sdx(recordings, "-m", model, "--language", "en", "--format", "srt", "-o", place / "out", "--resume", "--temperature", "0")
    check(done.returncode == 0 and kept.read_text() == "kept" and (place / "out" / "b.srt").exists(), "--resume")
    pcm = wm.sound(5, 5).astype("<i2").tobytes()
    piped = transcribed("-", "-m", model, "--language", "en", "--temperature", "0", input=pcm)
    (place / "piped.wav").write_bytes(wm.wav(wm.sound(5, 5)))
    filed = transcribed(place / "piped.wav", "-m", model, "--language", "en", "--temperature", "0")
    check(piped["segments"] == filed["segments"], "standard input and file differ")


def memory(place):
    """An hour takes no more memory than a minute, beyond what is kept of the features. The model's windows are long and its text short."""
    c = wm.config(seconds=30, width=8, heads=2, layers=1, bins=80, positions=12)
    wm.write_folder(place / "fast", c, wm.weights(c, 1, 0.3))
    peaks = []
    for minutes in (60, 180):
        # Minute by minute: a new process begins with what this one has as its peak.
        minute = wm.wav(wm.sound(60, 1))
        with open(place / "hour.wav", "wb") as file:
            file.write(minute[:40] + b"\xff\xff\xff\xff")  # of unknown length
            for _ in range(minutes):
                file.write(minute[44:])
        process = subprocess.Popen([SDX, "transcribe", place / "hour.wav", "-m", place / "fast", "--language", "en", "--temperature", "0",
                                    "--timestamps", "none", "-t", "1"], stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        check(status == 0, f"{minutes} minutes: {status}")
        peaks.append(usage.ru_maxrss / 1024 - (place / "hour.wav").stat().st_size / 2**20)
    print("peak memory in MiB, without the mapped file:", peaks)
    check(peaks[1] < peaks[0] + 40, f"memory grows with the sound: {peaks}")


with tempfile.TemporaryDirectory() as folder:
    recorded(Path(folder))
    words(Path(folder))
    hidden_attention(Path(folder))
    weights(Path(folder))
    for test in (guards, hostile, folders, memory):
        test(Path(folder))
print(f"{len(failures)} failures")
sys.exit(1 if failures else 0)
