#!/usr/bin/env python3
"""The server of `sdx faces page`: page_api_test.py SDX. Crops are compared with what `sdx faces crop` writes, byte for byte.

Exit code 77 without test models.
"""

import io
import json
import subprocess
import sys
import zipfile
import zlib

from page_server import SKIP, Page, models

# Settings as the page sends them, and as the command takes them.
CROPS = [
    ({"preset": "avatar"}, ["--preset", "avatar"]),
    ({"preset": "passport", "enhance": "natural,sharpen=0.8"}, ["--preset", "passport", "--enhance", "natural,sharpen=0.8"]),
    ({"width": 300, "height": 400, "face_height": 45, "fill": "blur"}, ["--width", "300", "--height", "400", "--face-height", "45", "--fill", "blur"]),
    ({"width": 256, "height": 256, "position": "custom", "offset_x": -0.31, "offset_y": 0.22, "fill": "edge"},
     ["--width", "256", "--height", "256", "--position", "custom", "--offset-x=-0.31", "--offset-y", "0.22", "--fill", "edge"]),
    ({"preset": "us", "format": "jpeg", "quality": 77}, ["--preset", "us", "--format", "jpeg", "--quality", "77"]),
    ({"preset": "linkedin", "shape": "ellipse", "format": "png", "align_eyes": True}, ["--preset", "linkedin", "--shape", "ellipse", "--format", "png", "--align-eyes"]),
    ({"preset": "headshot", "fill": "#336699", "format": "webp"}, ["--preset", "headshot", "--fill", "#336699", "--format", "webp"]),
    ({"preset": "instagram", "fill": "shift", "position": "rule-of-thirds"}, ["--preset", "instagram", "--fill", "shift", "--position", "rule-of-thirds"]),
]


def check(condition, *what):
    if not condition:
        raise SystemExit(f"failed: {what}")


def crops_are_the_commands(page, file):
    picture = page.upload(file)
    check(picture["faces"], "no face", file)
    for settings, flags in CROPS:
        expected = page.command_crop(file, flags)
        check(len(expected) == len(picture["faces"]), file, flags, list(expected))
        for face in range(len(picture["faces"])):
            status, headers, body = page.ask("POST", f"/api/pictures/{picture['id']}/crop", json.dumps({"face": face, **settings}))
            check(status == 200, file, settings, status, body[:300])
            name = f"{file.stem}_face{face + 1}{headers['X-Sdx-Ending']}"
            check(name in expected, name, list(expected))
            check(body == expected[name], "other bytes than the command's", file, settings, face)
    return picture


def zip_holds_all(page, pictures):
    wishes = [{"picture": p["id"], "face": i, "preset": "avatar"} for p in pictures for i in range(len(p["faces"]))]
    status, headers, body = page.ask("POST", "/api/zip", json.dumps({"crops": wishes}))
    check(status == 200 and headers["Content-Type"] == "application/zip", status, body[:300])
    with zipfile.ZipFile(io.BytesIO(body)) as archive:
        check(archive.testzip() is None, "damaged ZIP")
        check(len(archive.namelist()) == len(wishes), archive.namelist())
        first = wishes[0]
        _, _, crop = page.ask("POST", f"/api/pictures/{first['picture']}/crop", json.dumps({"face": 0, "preset": "avatar"}))
        check(archive.read(archive.namelist()[0]) == crop, "the ZIP holds other bytes")


def strangers_are_refused(page):
    for path in ("/", "/api/info", "/?token=" + "0" * 32, "/?token="):
        check(page.ask("GET", path, token=False)[0] == 403, path)
    check(page.ask("GET", f"/?token={page.token}", token=False)[0] == 200, "the page")
    check(page.ask("GET", f"/api/info?token={page.token}", token=False)[0] == 403, "the token in an address")
    check(page.ask("GET", "/api/info", headers={"Origin": "http://evil.example"})[0] == 403, "Origin")
    check(page.ask("GET", "/api/info", headers={"Origin": f"http://127.0.0.1:{page.port}"})[0] == 200, "Origin of its own")
    check(page.ask("GET", "/api/info", headers={"Host": f"evil.example:{page.port}"})[0] == 421, "Host")
    check(page.ask("POST", "/api/pictures", b"x" * (65 << 20), token=False)[0] == 403, "an upload without the token")


def bad_pictures_are_refused(page, file):
    status, _, body = page.ask("POST", "/api/pictures", b"x" * (65 << 20))
    check(status == 413 and b"error" in body, status)
    status, _, body = page.ask("POST", "/api/pictures", b"this is not a picture")
    check(status == 400 and json.loads(body)["error"]["message"], status, body)
    whole = file.read_bytes()
    status, _, body = page.ask("POST", "/api/pictures", whole[: len(whole) // 2])
    check(status in (400, 201), status, body)  # some formats show what has come
    # A header that announces more pixels than are taken: nothing is decoded.
    bomb = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + (30000).to_bytes(4, "big") * 2 + b"\x08\x02\0\0\0"
    bomb += zlib.crc32(bomb[12:]).to_bytes(4, "big") + b"\0\0\0\0IEND\xaeB`\x82"
    check(page.ask("POST", "/api/pictures", bomb)[0] in (400, 413), "a bomb")


def says_why_it_cannot_start(page):
    done = subprocess.run([page.sdx, "faces", "page", "-m", page.model, "--port", str(page.port)], capture_output=True, text=True, timeout=120)
    check(done.returncode == 1 and f"port {page.port}" in done.stderr and "open http" not in done.stderr, done)


def main():
    folder = models()
    if folder is None:
        print("skipped: no test models")
        return SKIP
    page = Page(sys.argv[1], folder / "face_yunet" / "yunet_n_dynamic.onnx", "--runtime", "native", "--port", "0")
    try:
        files = [folder / "_assets" / "astronaut.png"]
        files += [f for name in ("apollo11_crew.jpg", "orientation_6.jpg", "family_beach.jpg", "megapixels_24.jpg", "lossy.webp") if (f := folder / "faces" / "pictures" / name).exists()]
        pictures = [crops_are_the_commands(page, f) for f in files]
        zip_holds_all(page, pictures)
        path = f"/api/pictures/{pictures[0]['id']}/crop"
        check(page.ask("POST", path, '{"width": 16384, "height": 16384}')[0] == 413, "a crop that is too large")
        check(page.ask("POST", path, '{"preset": "avatar", "width": 5}')[0] == 400, "settings that contradict each other")
        strangers_are_refused(page)
        bad_pictures_are_refused(page, files[0])
        says_why_it_cannot_start(page)
        status, headers, body = page.ask("GET", f"/api/pictures/{pictures[0]['id']}/preview?size=200")
        check(status == 200 and headers["Content-Type"] == "image/jpeg" and body[:2] == b"\xff\xd8", status)
        check(page.json("GET", "/api/info")["runtime"] == "native", "runtime")
    finally:
        code = page.stop()
    check(code == 0, "exit code after Ctrl-C", code)
    print(f"ok: {len(files)} pictures, {len(CROPS)} settings")
    return 0


if __name__ == "__main__":
    sys.exit(main())
