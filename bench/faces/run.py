"""Sardonyx's faces beside OpenCV's own pipeline (imread, FaceDetectorYN, crop, imwrite), in turns on the same pictures.

    run.py --model yunet.onnx --photos FOLDER [--sdx build/release/bin/sdx] [--only speed|job|recall] [--markdown FILE]

speed: detection in one process, one thread, pictures whose longer side is 320 and 640, with what comes before and after the network.
job: a folder of photographs, each face written as a JPEG of 400x400, two cores; CPU time of all processes, and wall time.
recall: photographs, crowds and close-ups with known faces; at the precision that OpenCV has.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import cv2
import numpy as np

import pictures

HERE = pathlib.Path(__file__).resolve().parent
THRESHOLD, NMS, TOP_K = 0.6, 0.3, 5000


def fitted(picture: np.ndarray, longest: int) -> np.ndarray:
    scale = longest / max(picture.shape[:2])
    if scale >= 1:
        return picture
    size = (max(1, round(picture.shape[1] * scale)), max(1, round(picture.shape[0] * scale)))
    return cv2.resize(picture, size, interpolation=cv2.INTER_AREA)


class OpenCv:
    def __init__(self, model: str) -> None:
        self.net = cv2.FaceDetectorYN.create(model, "", (320, 320), THRESHOLD, NMS, TOP_K)

    def detect(self, picture: np.ndarray) -> np.ndarray:
        self.net.setInputSize((picture.shape[1], picture.shape[0]))
        rows = self.net.detect(picture)[1]
        return np.zeros((0, 15), np.float32) if rows is None else rows


def speed(args: argparse.Namespace, photos: list[tuple[str, np.ndarray]]) -> list[str]:
    from sardonyx import SessionOptions, faces

    cv2.setNumThreads(1)
    options = SessionOptions()
    options.intra_op_num_threads = 1
    lines = ["| longer side | OpenCV, ms | Sardonyx, ms | ratio | largest difference, px |", "|--:|--:|--:|--:|--:|"]
    for longest in (320, 640):
        ours = faces.FaceDetector(args.model, size="native", score=THRESHOLD, nms=NMS, runtime="native", sess_options=options)
        theirs = OpenCv(args.model)
        small = [fitted(p, longest) for _, p in photos]
        rgb = [np.ascontiguousarray(p[..., ::-1]) for p in small]
        apart, ratios, times = 0.0, [], ([], [])
        for bgr, picture in zip(small, rgb):
            a, b = theirs.detect(bgr), ours.detect(picture).faces
            if len(a) == len(b) and len(a):
                apart = max(apart, max(float(np.abs(np.array(f.box) - row[:4]).max()) for f, row in zip(b, a)))
        for _ in range(args.rounds):
            start = time.perf_counter()
            for bgr in small:
                theirs.detect(bgr)
            middle = time.perf_counter()
            for picture in rgb:
                ours.detect(picture)
            end = time.perf_counter()
            times[0].append((middle - start) / len(small) * 1e3)
            times[1].append((end - middle) / len(small) * 1e3)
            ratios.append((middle - start) / (end - middle))
        lines.append(
            f"| {longest} | {statistics.median(times[0]):.2f} | {statistics.median(times[1]):.2f} | {statistics.median(ratios):.2f} | {apart:.3f} |"
        )
    return lines


OPENCV_JOB = r"""
import pathlib, sys, multiprocessing, cv2
model, folder, out = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
cv2.setNumThreads(1)
def job(paths):
    net = cv2.FaceDetectorYN.create(model, "", (320, 320), 0.6, 0.3, 5000)
    for path in paths:
        picture = cv2.imread(str(path))
        scale = min(1.0, 640 / max(picture.shape[:2]))
        size = (max(1, round(picture.shape[1] * scale)), max(1, round(picture.shape[0] * scale)))
        small = cv2.resize(picture, size, interpolation=cv2.INTER_AREA) if scale < 1 else picture
        net.setInputSize(size)
        rows = net.detect(small)[1]
        for i, row in enumerate([] if rows is None else rows):
            x, y, w, h = (v / scale for v in row[:4])
            side = h / 0.7
            left, top = x + w / 2 - side / 2, y + h / 2 - side / 2
            x0, y0, x1, y1 = round(left), round(top), round(left + side), round(top + side)
            edge = [max(0, -y0), max(0, y1 - picture.shape[0]), max(0, -x0), max(0, x1 - picture.shape[1])]
            part = picture[max(0, y0):max(0, y1), max(0, x0):max(0, x1)]
            if part.size == 0:
                continue
            part = cv2.copyMakeBorder(part, *edge, cv2.BORDER_CONSTANT, value=(0, 0, 0))
            crop = cv2.resize(part, (400, 400), interpolation=cv2.INTER_AREA if side > 400 else cv2.INTER_LANCZOS4)
            to = out / path.relative_to(folder).parent
            to.mkdir(parents=True, exist_ok=True)
            cv2.imwrite(str(to / f"{path.stem}_{i + 1}.jpg"), crop, [cv2.IMWRITE_JPEG_QUALITY, 90])
if __name__ == "__main__":
    paths = sorted(folder.rglob("*.jpg"))
    with multiprocessing.Pool(2) as pool:
        pool.map(job, [paths[i::2] for i in range(2)])
"""


def timed(command: list[str]) -> tuple[float, float]:
    """Wall and CPU seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def job(args: argparse.Namespace, photos: list[tuple[str, np.ndarray]]) -> list[str]:
    lines = ["| pictures | megapixels | OpenCV, wall s (CPU s) | Sardonyx, wall s (CPU s) | ratio of wall times | crops: OpenCV, Sardonyx |", "|--:|--:|--:|--:|--:|--:|"]
    for megapixels in (0.4, 4, 12):
        with tempfile.TemporaryDirectory() as temporary:
            work = pathlib.Path(temporary)
            count = args.pictures if megapixels < 1 else max(20, int(args.pictures / megapixels))
            pictures.write_job(photos, work / "in", count, megapixels)
            results, ratios = ([], []), []
            for _ in range(args.rounds):
                for folder in ("theirs", "ours"):
                    shutil.rmtree(work / folder, ignore_errors=True)
                    (work / folder).mkdir()
                theirs = timed([sys.executable, "-c", OPENCV_JOB, args.model, str(work / "in"), str(work / "theirs")])
                ours = timed([args.sdx, "faces", "crop", str(work / "in"), "-o", str(work / "ours"), "-m", args.model, "--runtime", "native",
                              "--preset", "linkedin", "--format", "jpeg", "--quality", "90", "--workers", "2"])  # fmt: skip
                results[0].append(theirs)
                results[1].append(ours)
                ratios.append(theirs[0] / ours[0])
            crops = [sum(1 for _ in (work / f).rglob("*.jpg")) for f in ("theirs", "ours")]
            shown = [f"{statistics.median(w for w, _ in r):.2f} ({statistics.median(c for _, c in r):.2f})" for r in results]
            lines.append(f"| {count} | {megapixels} | {shown[0]} | {shown[1]} | {statistics.median(ratios):.2f} | {crops[0]}, {crops[1]} |")
    return lines


def overlaps(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    x = np.minimum(a[:, None, 0] + a[:, None, 2], b[None, :, 0] + b[None, :, 2]) - np.maximum(a[:, None, 0], b[None, :, 0])
    y = np.minimum(a[:, None, 1] + a[:, None, 3], b[None, :, 1] + b[None, :, 3]) - np.maximum(a[:, None, 1], b[None, :, 1])
    both = np.clip(x, 0, None) * np.clip(y, 0, None)
    return both / (a[:, None, 2] * a[:, None, 3] + (b[:, 2] * b[:, 3])[None] - both)


def scenes(model: str, photos: list[tuple[str, np.ndarray]]) -> list[pictures.Scene]:
    """Faces are known because they were placed: what OpenCV is sure of (0.85) in the single photographs at 640."""
    theirs = OpenCv(model)
    rng = np.random.default_rng(7)
    tiles = []
    for _, photo in photos:
        small = fitted(photo, 640)
        rows = theirs.detect(small)
        boxes = rows[:, :4] * (photo.shape[0] / small.shape[0])
        if len(rows) and rows[:, 14].min() > 0.85:
            tiles.append((photo, boxes))
    out = [pictures.crowd(tiles, rng, 6, 8, side) for side in (120, 200, 320) for _ in range(4)]
    for photo, boxes in tiles:
        if len(boxes) == 1:
            out += [pictures.close_up(photo, boxes[0], share, longest) for share in (0.5, 0.75, 0.95) for longest in (640, 1500)]
    out += [pictures.Scene("photograph", photo, boxes) for photo, boxes in tiles]
    return out


def matched(truth: np.ndarray, boxes: np.ndarray) -> list[bool]:
    """For each found box, highest score first, whether it is a face that none before it was."""
    free = np.ones(len(truth), bool)
    good = []
    for box in boxes:
        fit = overlaps(truth, box[None])[:, 0] * free if len(truth) else np.zeros(0)
        best = int(fit.argmax()) if len(fit) else -1
        good.append(best >= 0 and fit[best] >= 0.5)
        if good[-1]:
            free[best] = False
    return good


def recall(args: argparse.Namespace, photos: list[tuple[str, np.ndarray]]) -> list[str]:
    from sardonyx import faces

    all_scenes = scenes(args.model, photos)
    auto = faces.FaceDetector(args.model, runtime="native")
    small = faces.FaceDetector(args.model, runtime="native", min_face=10)
    theirs = OpenCv(args.model)

    def opencv(longest: int):
        def find(picture: np.ndarray) -> list[tuple[float, np.ndarray]]:
            shrunk = fitted(picture, longest) if longest else picture
            rows = theirs.detect(shrunk)
            return [(float(r[14]), r[:4] * (picture.shape[0] / shrunk.shape[0])) for r in rows]

        return find

    def ours(detector):
        return lambda picture: [(f.score, np.array(f.box)) for f in detector.detect(np.ascontiguousarray(picture[..., ::-1])).faces]

    ways = {"OpenCV, native size": opencv(0), "OpenCV, 640": opencv(640), "Sardonyx, --size auto": ours(auto), "Sardonyx, --min-face 10": ours(small)}
    lines = ["| | " + " | ".join(f"{k}: recall, precision" for k in ("photograph", "crowd", "close-up")) + " | s |", "|---|--:|--:|--:|--:|"]
    for name, find in ways.items():
        counts = {k: [0, 0, 0] for k in ("photograph", "crowd", "close-up")}
        start = time.perf_counter()
        for scene in all_scenes:
            found = sorted(find(scene.picture), key=lambda f: -f[0])
            good = matched(scene.faces, np.array([b for _, b in found]).reshape(-1, 4))
            counts[scene.kind][0] += sum(good)
            counts[scene.kind][1] += len(scene.faces)
            counts[scene.kind][2] += len(found)
        seconds = time.perf_counter() - start
        cells = [f"{hit / max(1, real):.3f}, {hit / max(1, found):.3f}" for hit, real, found in counts.values()]
        lines.append(f"| {name} | " + " | ".join(cells) + f" | {seconds:.1f} |")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    models = pathlib.Path(os.environ.get("SDX_TEST_MODELS", HERE.parent.parent.parent / "shared" / "models"))
    parser.add_argument("--model", default=str(models / "face_yunet" / "face_detection_yunet_2023mar_640.onnx"))
    parser.add_argument("--photos", type=pathlib.Path, default=models / "faces" / "pictures")
    parser.add_argument("--sdx", default=str(HERE.parent.parent / "build" / "release" / "bin" / "sdx"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--pictures", type=int, default=400)
    parser.add_argument("--only", choices=["speed", "job", "recall"])
    parser.add_argument("--markdown", type=pathlib.Path)
    args = parser.parse_args()
    photos = pictures.photographs(args.photos)
    if not photos:
        sys.exit(f"no pictures in {args.photos}")
    sections = {"speed": speed, "job": job, "recall": recall}
    text = ""
    for name, measure in sections.items():
        if args.only in (None, name):
            text += f"## {name}\n\n" + "\n".join(measure(args, photos)) + "\n\n"
            print(text.rsplit("## ", 1)[-1], flush=True)
    if args.markdown:
        args.markdown.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
