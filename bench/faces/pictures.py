"""Pictures for the comparison, made from a folder of photographs: a job of many files, and scenes whose faces are known."""

from __future__ import annotations

import dataclasses
import pathlib

import cv2
import numpy as np

ENDINGS = {".jpg", ".jpeg", ".png", ".webp", ".bmp"}


def photographs(folder: pathlib.Path) -> list[tuple[str, np.ndarray]]:
    """Every picture of the folder that OpenCV reads and that is no test of a reader's limits, by name."""
    out = []
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() not in ENDINGS or path.name.startswith(("bomb", "huge", "wide", "tall", "one_pixel", "orientation")):
            continue
        picture = cv2.imread(str(path), cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION)
        if picture is not None and min(picture.shape[:2]) >= 64:
            out.append((path.name, picture))
    return out


def variation(picture: np.ndarray, rng: np.random.Generator, megapixels: float) -> np.ndarray:
    """The photograph as another camera would have taken it: size, mirror, light, noise."""
    height, width = picture.shape[:2]
    scale = np.sqrt(megapixels * 1e6 / (height * width)) * rng.uniform(0.8, 1.2)
    size = (max(64, round(width * scale)), max(64, round(height * scale)))
    out = cv2.resize(picture, size, interpolation=cv2.INTER_AREA if scale < 1 else cv2.INTER_CUBIC)
    if rng.random() < 0.5:
        out = out[:, ::-1]
    out = out.astype(np.float32) * rng.uniform(0.8, 1.15) + rng.uniform(-12, 12)
    noise = rng.normal(0, 2, out.shape[:2]).astype(np.float32)
    return np.clip(out + noise[..., None], 0, 255).astype(np.uint8)


def write_job(photos: list[tuple[str, np.ndarray]], into: pathlib.Path, count: int, megapixels: float, seed: int = 1) -> None:
    """`count` JPEGs in folders of a hundred."""
    rng = np.random.default_rng(seed)
    for i in range(count):
        folder = into / f"{i // 100:03}"
        folder.mkdir(parents=True, exist_ok=True)
        _, photo = photos[int(rng.integers(len(photos)))]
        cv2.imwrite(str(folder / f"{i:05}.jpg"), variation(photo, rng, megapixels), [cv2.IMWRITE_JPEG_QUALITY, 90])


@dataclasses.dataclass
class Scene:
    kind: str  # "crowd", "close-up", "photograph"
    picture: np.ndarray
    faces: np.ndarray  # x, y, width, height


def crowd(tiles: list[tuple[np.ndarray, np.ndarray]], rng: np.random.Generator, rows: int, columns: int, side: int) -> Scene:
    """Photographs side by side, each in a square of `side` pixels."""
    picture = np.full((rows * side, columns * side, 3), 114, np.uint8)
    faces = []
    for r in range(rows):
        for c in range(columns):
            photo, boxes = tiles[int(rng.integers(len(tiles)))]
            scale = side / max(photo.shape[:2])
            small = cv2.resize(photo, (round(photo.shape[1] * scale), round(photo.shape[0] * scale)), interpolation=cv2.INTER_AREA)
            picture[r * side : r * side + small.shape[0], c * side : c * side + small.shape[1]] = small
            faces += [[x * scale + c * side, y * scale + r * side, w * scale, h * scale] for x, y, w, h in boxes]
    return Scene("crowd", picture, np.array(faces).reshape(-1, 4))


def close_up(photo: np.ndarray, box: np.ndarray, share: float, longest: int) -> Scene:
    """One face that takes `share` of the picture's height."""
    x, y, w, h = box
    side = h / share
    left, top = max(0, round(x + w / 2 - side / 2)), max(0, round(y + h / 2 - side / 2))
    cut = photo[top : round(top + side), left : round(left + side)]
    scale = longest / max(cut.shape[:2])
    big = cv2.resize(cut, None, fx=scale, fy=scale, interpolation=cv2.INTER_CUBIC)
    return Scene("close-up", big, np.array([[(x - left) * scale, (y - top) * scale, w * scale, h * scale]]))
