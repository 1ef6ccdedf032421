"""sdx faces as a program: faces_test.py SDX PART...

Parts: detect (answers of other implementations, which the folder of models has), batch (broken files among good ones), resume (killed at
random moments), watch, tables, frames, places (full disks, names, what must not be replaced), own_results (what is written is not read),
terminals (names, width). Without a folder of models (SDX_TEST_MODELS) all but `detect` run with the tiny detector of tests/cli; `detect` is
skipped (exit code 77).
"""

import contextlib
import csv
import fcntl
import hashlib
import json
import os
import random
import resource
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent.parent / part) for part in ("cli", "support")]
from scratch import scratch  # noqa: E402
import tiny_models

MODELS = os.environ.get("SDX_TEST_MODELS")
SKIPPED = 77


class Place:
    """A fresh folder with the tiny detector, and the command in it."""

    def __init__(self, sdx, folder):
        self.sdx, self.folder = sdx, folder
        self.model = folder / "faces.onnx"
        self.model.write_bytes(tiny_models.face_detector())

    def command(self, *words):
        task, *rest = [str(w) for w in words]
        return [self.sdx, "faces", task, *rest, "-m", str(self.model)]

    def run(self, *words, code=0, **more):
        result = subprocess.run(self.command(*words), cwd=self.folder, capture_output=True, timeout=300, **more)
        err = result.stderr.decode(errors="replace")
        assert code is None or result.returncode == code, f"{words}: exit code {result.returncode}: {err[-2000:]}"
        return result.stdout.decode(errors="replace"), err

    def records(self, *words, code=0, **more):
        out, err = self.run(*words, "--json", code=code, **more)
        return json.loads(out)["pictures"], err

    def put(self, name, content):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path


def picture(seed=0, size=64):
    """A light picture unlike those of other seeds."""
    pixels = bytearray()
    for i in range(size * size):
        pixels += bytes([200 + (i * 7 + seed) % 56, 190 + (seed * 13) % 60, 255 - (seed % 50)])
    return tiny_models.png(size, size, bytes(pixels))


def tree(folder):
    """Every file of a folder but the journal, and what is in it."""
    out = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name != ".sdx-faces.jsonl":
            out[str(path.relative_to(folder))] = hashlib.sha256(path.read_bytes()).hexdigest()
    return out


# ---- Answers


def overlap(a, b):
    x, y = max(a[0], b[0]), max(a[1], b[1])
    w, h = min(a[0] + a[2], b[0] + b[2]) - x, min(a[1] + a[3], b[1] + b[3]) - y
    both = max(w, 0) * max(h, 0)
    return both / (a[2] * a[3] + b[2] * b[3] - both)


def detect(place):
    if not MODELS or not (Path(MODELS) / "faces" / "expected.json").is_file():
        return SKIPPED
    root = Path(MODELS)
    place.model = root / "face_yunet" / "face_detection_yunet_2023mar.onnx"
    expected = json.loads((root / "faces" / "expected.json").read_text())["pictures"]
    pictures = root / "faces" / "pictures"
    records, _ = place.records("detect", pictures, "--size", "native", code=1)
    got = {Path(r["file"]).name: r for r in records}
    problems, compared = [], 0
    for name, wanted in expected.items():
        record = got.get(name)
        if record is None:
            problems.append(f"{name}: no record")
            continue
        if wanted["status"] == "error" and not record["error"]:
            problems.append(f"{name}: no error")
        if wanted["status"] != "ok":
            continue
        if record["error"]:
            # Formats whose libraries are not there are said to be; nothing else may fail.
            if "cannot be loaded" not in record["error"]:
                problems.append(f"{name}: {record['error']}")
            continue
        if (record["width"], record["height"]) != (wanted["width"], wanted["height"]):
            problems.append(f"{name}: {record['width']}x{record['height']}, not {wanted['width']}x{wanted['height']}")
        rows = wanted.get("yunet_2023mar", {}).get("native")
        if rows is None:
            continue
        compared += 1
        for row in rows:
            if row[-1] >= 0.75 and not any(overlap(row[:4], f["box"]) >= 0.75 for f in record["faces"]):
                problems.append(f"{name}: the face at {row[:4]} is missing")
        for face in record["faces"]:
            if face["score"] >= 0.75 and not any(overlap(row[:4], face["box"]) >= 0.6 for row in rows):
                problems.append(f"{name}: a face at {face['box']} too many")
    assert not problems, "\n".join(problems)
    assert compared >= 15, compared
    # BMP has no room for a colour profile: its pixels become sRGB whether or not metadata is kept.
    for mode in ("preserve", "strip"):
        place.run("crop", pictures / "display_p3.jpg", "-o", mode, "--format", "bmp", "--metadata", mode)
    assert tree(place.folder / "preserve") == tree(place.folder / "strip")
    automatic, _ = place.records("detect", pictures / "astronaut.png", pictures / "family_beach.jpg")
    assert [len(r["faces"]) for r in automatic] == [1, len(automatic[1]["faces"])] and len(automatic[1]["faces"]) >= 2
    return 0


# ---- Batches


def batch(place):
    for i in range(12):
        place.put(f"in/{i:02}.png", picture(i))
    for name, content in {"cut.png": picture(1)[:80], "empty.jpg": b"", "text.png": b"<html>no picture</html>",
                          "deep/bad.jpg": b"\xff\xd8\xff" + bytes(50)}.items():
        place.put(f"in/{name}", content)
    place.put("in/deep/00.png", picture(50))
    (place.folder / "in/gone.png").symlink_to("nowhere.png")
    for workers in (1, 3):
        records, err = place.records("crop", "in", "-o", f"out{workers}", "--workers", workers, code=1)
        assert [r["file"] for r in records] == sorted(r["file"] for r in records), "the order of the folder"
        failed = {Path(r["file"]).name for r in records if r["error"]}
        assert failed == {"cut.png", "empty.jpg", "text.png", "bad.jpg"}, failed
        assert f"4 of {len(records)} pictures failed" in err, err
    assert tree(place.folder / "out1") == tree(place.folder / "out3")
    assert len(tree(place.folder / "out1")) == 13
    # Equal stems, one format: nobody's output is another's.
    place.put("same/a.png", picture(1))
    place.put("same/a.jpg", picture(2))
    place.put("same/a-2.png", picture(3))
    place.run("crop", "same", "-o", "same_out", "--format", "bmp")
    names = set(tree(place.folder / "same_out"))
    assert len(names) == 3 and {"a_face1.bmp", "a-2_face1.bmp"} <= names, names
    # As many pictures at a time as asked for: the workers beside the thread that writes results down.
    for i in range(300):
        place.put(f"many/{i:03}.png", picture(i, 200))
    process = subprocess.Popen(place.command("crop", "many", "-o", "many_out", "--workers", "5"), cwd=place.folder, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    most = 0
    while process.poll() is None:
        try:
            most = max(most, len(os.listdir(f"/proc/{process.pid}/task")))
        except OSError:
            break
    assert process.wait() == 0 and most >= 6, most
    return 0


def resume(place):
    rounds, pictures = 10, 240
    for i in range(pictures):
        place.put(f"in/{i % 7}/{i:03}.png", picture(i, 48))
    flags = ["--width", 96, "--format", "png", "--workers", 2, "--metadata", "custom", "--tag", "a=b"]
    place.run("crop", "in", "-o", "whole", *flags)
    wanted = tree(place.folder / "whole")
    assert len(wanted) == pictures
    start = time.monotonic()
    place.run("crop", "in", "-o", "timed", *flags)
    lasts = time.monotonic() - start
    chance = random.Random(1)
    kills = 0
    report = ["--report", "report.jsonl"]
    for _ in range(rounds):
        process = subprocess.Popen(place.command("crop", "in", "-o", "killed", "--resume", *report, *flags), cwd=place.folder,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(chance.uniform(0.02, lasts / 2))
        if process.poll() is None:
            process.kill()
            kills += 1
        process.communicate()
        out = place.folder / "killed"
        for name, digest in (tree(out) if out.exists() else {}).items():
            if not name.startswith(".sdx-faces.tmp/"):
                assert wanted.get(name) == digest, f"{name} is half written or too many"
    assert kills > 0
    records, err = place.records("crop", "in", "-o", "killed", "--resume", *report, *flags)
    assert "of them done before" in err, err
    listed = [json.loads(line)["file"] for line in (place.folder / "report.jsonl").read_text().splitlines()]
    assert listed == [r["file"] for r in records], "nothing twice in the report"
    assert not list(place.folder.glob("report.jsonl.*")), "reports that were cut short"
    assert tree(place.folder / "killed") == wanted, "the same outputs, none half-written, nothing left over"
    assert len(records) == pictures and not any(r["error"] for r in records)
    assert all(len(r["faces"]) == 1 and r["faces"][0]["output"] for r in records), "records of pictures that were done before"
    # A dry run knows what is done and writes nothing.
    journal = (place.folder / "killed/.sdx-faces.jsonl").read_bytes()
    (place.folder / "killed" / next(iter(wanted))).unlink()
    _, err = place.records("crop", "in", "-o", "killed", "--resume", "--dry-run", *flags)
    assert f"{pictures - 1} of them done before" in err, err
    assert (place.folder / "killed/.sdx-faces.jsonl").read_bytes() == journal and len(tree(place.folder / "killed")) == pictures - 1
    place.run("crop", "in", "-o", "killed", "--resume", *flags)
    assert tree(place.folder / "killed") == wanted
    # A picture that has changed is done again; other settings do not count as done.
    place.put("in/0/000.png", picture(999, 48))
    _, err = place.records("crop", "in", "-o", "killed", "--resume", *flags)
    assert f"{pictures - 1} of them done before" in err, err
    assert tree(place.folder / "killed") != wanted
    before = tree(place.folder / "killed")
    _, err = place.records("crop", "in", "-o", "killed", "--resume", *flags, "--face-height", 50, code=1)
    assert "done before" not in err and "nothing counts as done" in err and "already exists" in err, err
    assert tree(place.folder / "killed") == before, "the results of other settings are not replaced by the way"
    records, err = place.records("crop", "in", "-o", "other", "--resume", *flags, "--face-height", 50)
    assert len(records) == pictures and "nothing counts" not in err, err
    # Ctrl-C ends a batch in good order.
    process = subprocess.Popen(place.command("crop", "in", "-o", "stopped", "--json", *flags), cwd=place.folder, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
    process.stdout.readline()
    process.stdout.readline()
    for _ in range(2):  # timeout(1) sends it to the process and to its group: that is one wish
        process.send_signal(signal.SIGINT)
        time.sleep(0.01)
    rest, err = process.communicate(timeout=60)
    if process.returncode != 0:  # else it was done before the signal came
        assert process.returncode == 130 and b"--resume continues" in err, (process.returncode, err)
        assert rest.rstrip().endswith(b"]}"), rest[-200:]
    return 0


def until(condition, seconds=30):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return condition()


def watch(place):
    place.put("in/first.png", picture(1))
    out = place.folder / "in" / "out"  # inside what is watched: its crops are not cropped again
    process = subprocess.Popen(place.command("crop", "in", "-o", out, "--watch", "--width", 64), cwd=place.folder,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert until(lambda: (out / "first_face1.png").is_file())
        with open(place.folder / "in/slow.png", "wb") as slow:  # seen when it is closed, not before
            content = picture(2)
            slow.write(content[:100])
            slow.flush()
            time.sleep(0.3)
            slow.write(content[100:])
        place.put("in/new/deep/third.png", picture(3))
        (place.folder / "comes").mkdir()
        with open(place.folder / "comes/late.png", "wb") as late:  # in a folder that comes while the file is written
            late.write(content[:100])
            late.flush()
            (place.folder / "comes").rename(place.folder / "in/came")
            time.sleep(0.3)
            late.write(content[100:])
        moved = place.put("elsewhere.png", picture(4))
        moved.rename(place.folder / "in/moved.png")
        place.put("in/.hidden.png", picture(5))
        place.put("in/notes.txt", b"no picture")
        wanted = {"first_face1.png", "slow_face1.png", "new/deep/third_face1.png", "came/late_face1.png", "moved_face1.png"}
        assert until(lambda: set(tree(out)) >= wanted), tree(out)
        before = tree(out)
        place.put("in/slow.png", picture(77))  # written again: done again
        assert until(lambda: tree(out).get("slow_face1.png") not in (None, before["slow_face1.png"]))
        time.sleep(0.2)
        assert until(lambda: set(tree(out)) == wanted, 10), sorted(tree(out))[:10]  # a file may just be on its way to its name
    finally:
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert b"watching 1 folder" in err, err
    return 0


def tables(place):
    for name in ("a b.png", "é.png", "sub/c.png"):
        place.put(f"in/{name}", picture(len(name)))
    rows = [("a b.png", "Anna, \"A\""), ("é.png", "0042"), ("sub/c.png", "team/x.png")]
    with open(place.folder / "map.csv", "w", newline="") as file:
        csv.writer(file).writerows([("id", "photo", "badge"), *[(i, *row) for i, row in enumerate(rows)]])
    (place.folder / "map.jsonl").write_text("".join(json.dumps({"photo": a, "badge": b}) + "\n" for a, b in rows))
    base = sqlite3.connect(place.folder / "map.sqlite")
    base.execute("CREATE TABLE people (photo TEXT, badge TEXT)")
    base.execute("CREATE TABLE \"odd \"\"name\" (x)")
    base.executemany("INSERT INTO people VALUES (?, ?)", rows)
    base.commit()
    base.close()
    wanted = None
    for name, more in (("map.csv", []), ("map.jsonl", []), ("map.sqlite", ["--map-table", "people"]),
                       ("map.sqlite", ["--map-query", "SELECT badge, photo FROM people ORDER BY rowid"])):
        out = f"out{len(list(place.folder.iterdir()))}"
        records, _ = place.records("crop", "in", "--map", name, "--source-col", "photo", "--output-col", "badge", "-o", out, *more)
        assert [Path(r["file"]).name for r in records] == ["a b.png", "é.png", "c.png"]
        got = tree(place.folder / out)
        assert set(got) == {'Anna, "A".png', "0042.png", "team/x.png"}, got
        wanted = wanted or got
        assert got == wanted
    _, err = place.run("crop", "in", "--map", "map.sqlite", "-o", "none", code=1)
    assert "--map-table names one of" in err and "people" in err, err
    _, err = place.run("crop", "in", "--map", "map.sqlite", "--map-query", "SELEC", "-o", "none", code=1)
    assert "syntax error" in err, err
    (place.folder / "evil.csv").write_text("photo,badge\na b.png,../../evil\né.png,good\n")
    _, err = place.run("crop", "in", "--map", "evil.csv", "--source-col", "photo", "--output-col", "badge", "-o", "evil", code=1)
    assert "may lead out of the folder" in err and set(tree(place.folder / "evil")) == {"good.png"}, err
    return 0


def frames(place):
    ppm = b"P6\n64 64\n255\n" + bytes([250, 240, 230]) * 4096
    dark = b"P6\n64 64\n255\n" + bytes(3 * 4096)
    records, err = place.records("detect", "-", input=ppm + dark + ppm)
    assert [r["file"] for r in records] == ["-#1", "-#2", "-#3"]
    assert [len(r["faces"]) for r in records] == [1, 0, 1]
    assert "3 frames in" in err, err
    place.put("still.png", picture(1))
    place.run("crop", "still.png", "-o", "jpeg", "--format", "jpeg")
    jpeg = (place.folder / "jpeg/still_face1.jpg").read_bytes()
    records, _ = place.records("crop", "-", "-o", "frames", input=jpeg * 20)
    assert len(records) == 20 and all(r["width"] == 512 for r in records)
    assert set(tree(place.folder / "frames")) == {f"frame_{i:06}_face1.jpg" for i in range(1, 21)}
    place.run("detect", "-", input=b"neither of the two", code=1)
    records, _ = place.records("detect", "-", input=b"")
    assert records == []
    # What cannot be read is not a stream without frames.
    folder = os.open(place.folder, os.O_RDONLY)
    _, err = place.run("detect", "-", code=1, stdin=folder)
    os.close(folder)
    assert "reading the stream of pictures failed" in err, err
    # Ctrl-C in the middle of a frame is no damaged frame.
    process = subprocess.Popen(place.command("detect", "-", "--json"), cwd=place.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
    process.stdin.write(ppm + ppm[:100])
    process.stdin.flush()
    while b'"faces"' not in process.stdout.read1():
        pass
    process.send_signal(signal.SIGINT)
    process.wait(timeout=60)  # with its input still open
    rest, err = process.communicate()
    assert process.returncode == 0 and b"damaged" not in rest and b"1 frame in" in err, (process.returncode, rest, err)
    return 0


def places(place):
    names = ["name with spaces é 人.png", "a'b\"c.png", "-dash.png", "100%.png", "{stem}.png", "colon:12.png", "UPPER.PNG"]
    for i, name in enumerate(names):
        place.put(f"in/{name}", picture(i))
    with contextlib.suppress(OSError):
        (place.folder / os.fsdecode(b"in/latin-\xe9.png")).write_bytes(picture(9))
        names.append("latin")
    records, _ = place.records("crop", "in", "-o", "out")
    assert len(records) == len(names) and len(tree(place.folder / "out")) == len(names)
    assert (place.folder / "out/name with spaces é 人_face1.png").is_file()
    # What was there stays, and so does what is read.
    before = tree(place.folder / "in")
    _, err = place.run("crop", *(place.folder / "in").iterdir(), "-o", "in", "--name", "{stem}.{ext}", "--overwrite", code=1)
    assert "inputs are never replaced" in err
    after = {k: v for k, v in tree(place.folder / "in").items() if k in before}
    assert after == before
    # A file-size limit stands for a disk that is full: an error for the picture, and nothing half-written.
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))

    _, err = place.run("crop", "in", "-o", "small", "--format", "bmp", code=1, preexec_fn=limit, restore_signals=False)
    assert "cannot write 'small/" in err, err
    assert tree(place.folder / "small") == {}, tree(place.folder / "small")
    if Path("/dev/full").exists():
        with open("/dev/full", "wb") as full:
            result = subprocess.run(place.command("detect", "in", "--json"), cwd=place.folder, stdout=full, stderr=subprocess.PIPE,
                                    timeout=60)
        assert result.returncode == 1 and b"cannot write to standard output" in result.stderr
    tiny_disk(place)
    (place.folder / "file").write_bytes(b"")
    _, err = place.run("crop", "in", "-o", "file/out", code=1)
    assert "cannot create the folder" in err, err
    return 0


def tiny_disk(place):
    """A file system of 64 KiB, where mounting is permitted: the batch stops, and goes on with room."""
    disk = place.folder / "disk"
    disk.mkdir()
    mounted = shutil.which("mount") and subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)],
                                                       capture_output=True).returncode == 0
    if not mounted:
        return
    try:
        flags = ["--width", 100, "--format", "bmp", "--workers", 1]  # 30 KB each
        _, err = place.run("crop", "in", "-o", "disk", *flags, code=1)
        assert "No space left on device" in err and "--resume continues" in err, err
        written = [n for n in tree(disk) if not n.startswith(".sdx")]
        assert written and all(struct.unpack("<I", (disk / n).read_bytes()[2:6])[0] == (disk / n).stat().st_size for n in written)
        subprocess.run(["mount", "-o", "remount,size=4m", str(disk)], check=True)
        place.run("crop", "in", "-o", "disk", *flags, "--resume")
        assert len(tree(disk)) == len(tree(place.folder / "in")), sorted(tree(disk))
    finally:
        subprocess.run(["umount", str(disk)], check=False)


def own_results(place):
    """What a batch writes is never what it reads: not in this run, not in the next, not while it watches."""
    for i in range(3):
        place.put(f"in/{i}.png", picture(i))
    for paths in (["in"], ["in/*.png"], ["in/../in"]):
        _, err = place.run("crop", *paths, "-o", "in", code=1)
        assert "is read and written" in err, err
    process = subprocess.run(place.command("crop", "in", "-o", "in", "--watch"), cwd=place.folder, capture_output=True, timeout=60)
    assert process.returncode == 1 and b"is read and written" in process.stderr, process.stderr
    assert len(tree(place.folder / "in")) == 3
    # The folder of the results need not be there when watching begins.
    process = subprocess.Popen(place.command("crop", ".", "-o", "new", "--watch"), cwd=place.folder / "in", stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE)
    new = place.folder / "in/new"
    assert until(lambda: new.is_dir() and len(tree(new)) == 3)
    place.put("in/3.png", picture(3))
    assert until(lambda: (new / "3_face1.png").is_file())
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert set(tree(new)) == {f"{i}_face1.png" for i in range(4)}, tree(new)
    shutil.rmtree(new)
    (place.folder / "in/3.png").unlink()
    for _ in range(2):  # the second run does not find the results of the first
        records, _ = place.records("crop", "in/**/*.png", "-o", "in/out", "--overwrite")
        assert len(records) == 3 and len(tree(place.folder / "in/out")) == 3
    shutil.rmtree(place.folder / "in/out")
    _, err = place.run("blur", "in", "-o", "both", "--annotate", "./both/", code=2)
    assert "name the same folder" in err and not (place.folder / "both").exists(), err
    # A report never replaces the table that it is made from.
    table = place.put("map.csv", b"photo,name\n0.png,x\n")
    _, err = place.run("crop", "in", "--map", "map.csv", "--source-col", "photo", "-o", "mapped", "--report", "map.csv", code=1)
    assert "this run reads that file" in err and table.read_bytes() == b"photo,name\n0.png,x\n", err
    return 0


def terminals(place):
    """Names cannot command a terminal, and the line of progress stays one line."""
    place.put("in/a\x1b[31m\nb.png", picture(1))
    place.put("in/a\xc2\x9bc.png".encode("latin-1").decode(), picture(2))
    place.put("in/bad\x1b]0;x\x07.png", b"no picture")
    out, err = place.run("detect", "in", code=1)
    assert "a\\u001b[31m\\nb.png" in out and "bad\\u001b]0;x\\u0007.png" in err, (out, err)
    assert not any(c in out + err for c in "\x1b\x07\x9b"), (out, err)
    records, _ = place.records("detect", "in", code=1)
    assert {Path(r["file"]).name for r in records} == {p.name for p in (place.folder / "in").iterdir()}, "JSON has names as they are"
    for i in range(40):
        place.put(f"many/{i:02}.png", picture(i, 200))
    for columns in (20, 60):
        master, slave = os.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        with subprocess.Popen(place.command("detect", "many", "--any-orientation", "--workers", 1), cwd=place.folder,
                              stdout=subprocess.DEVNULL, stderr=slave) as process:
            os.close(slave)
            drawn = b""
            with contextlib.suppress(OSError):  # how a terminal says that nobody writes to it any more
                while piece := os.read(master, 65536):
                    drawn += piece
        os.close(master)
        lines = [line for line in drawn.split(b"\r\x1b[K") if b"/40" in line]
        assert process.returncode == 0 and lines and max(map(len, lines)) < columns, drawn
    return 0


PARTS = {"detect": detect, "batch": batch, "resume": resume, "watch": watch, "tables": tables, "frames": frames, "places": places, "own_results": own_results,
         "terminals": terminals}


def main():
    sdx = str(Path(sys.argv[1]).resolve())
    codes = []
    for part in sys.argv[2:] or PARTS:
        with scratch() as folder:
            start = time.monotonic()
            codes.append(PARTS[part](Place(sdx, folder)))
            print(f"{part}: {'skipped' if codes[-1] == SKIPPED else 'ok'} ({time.monotonic() - start:.1f} s)")
    return SKIPPED if codes == [SKIPPED] else 0


if __name__ == "__main__":
    sys.exit(main())
