"""Faces in pictures: found, judged, cropped, aligned, made unrecognisable.

    from sardonyx import faces

    detector = faces.FaceDetector("yunet.onnx")
    picture = faces.read("photo.jpg")
    for face in detector.detect(picture).faces:
        faces.write("face.jpg", faces.crop(picture, face, preset="passport"))

Pictures are NumPy arrays uint8[height, width, channels]: red, green, blue, and opacity where there is a fourth channel; uint8[height, width]
is grey. Coordinates are pixels of the upright picture, continuous: pixel i covers [i, i+1). Right and left are the subject's. All functions
release the GIL and may be called by several threads at once. `docs/faces/faces.md` describes what the options mean.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Iterable, Mapping, Sequence

from . import _sardonyx
from ._providers import Providers, options_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ._options import SessionOptions

    Picture = NDArray[np.uint8]

_faces = _sardonyx.faces()


@dataclass
class Face:
    """A face: box (x, y, width, height), score from 0 to 1, points by name ("right_eye", "left_eye", "nose", "right_mouth", "left_mouth";
    BlazeFace: "mouth", "right_ear", "left_ear"). turned: degrees clockwise by which the picture must be turned for the face to be upright."""

    box: tuple[float, float, float, float]
    score: float = 1.0
    points: dict[str, tuple[float, float]] = field(default_factory=dict)
    turned: int = 0

    def _plain(self) -> tuple[Any, Any, Any, Any]:
        return self.box, self.score, self.points, self.turned


@dataclass
class Quality:
    """level: "low", "medium" or "high" by sharpness; exposure: mean luma from 0 to 1; size_px: the box's shorter side; yaw, pitch and roll in
    degrees, None without points."""

    level: str
    sharpness: float
    exposure: float
    size_px: float
    yaw: float | None
    pitch: float | None
    roll: float | None


@dataclass
class Detection:
    """faces: highest score first; runtime and provider: what ran; times_ms: preprocess, inference, decode; turned: degrees clockwise by which
    the picture had to be turned before a face was found; smallest: pixels of the smallest face that could be seen."""

    faces: list[Face]
    runtime: str
    provider: str
    times_ms: dict[str, float]
    turned: int = 0
    smallest: float = 0.0


@dataclass(frozen=True)
class Preset:
    """A size for crop(): pixels, dots per inch (0: none), per cent of the height that the face takes."""

    name: str
    description: str
    width: int
    height: int
    dpi: float
    face_height: float


class FaceDetector:
    """A detector model: YuNet, SCRFD, RetinaFace, UltraFace, CenterFace or BlazeFace, recognised by its outputs.

    runtime: "auto", "native" or "ort". size: "auto", "native" or (width, height). min_face: faces of fewer pixels are not reported; it also
    decides how closely pictures are examined. thorough: for hiding faces, examines pictures at their full resolution, or as closely as min_face
    requires, and reports smaller faces, too. score, nms: None is the decoder's own.
    providers, sess_options: as for InferenceSession.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        runtime: str = "auto",
        size: str | tuple[int, int] = "auto",
        min_face: int = 0,
        any_orientation: bool = False,
        thorough: bool = False,
        score: float | None = None,
        nms: float | None = None,
        top_k: int = 5000,
        decoder: str = "",
        providers: Providers | None = None,
        sess_options: SessionOptions | None = None,
    ) -> None:
        session = options_of(providers, sess_options)
        own: dict[str, Any] = {
            "runtime": runtime,
            "min_face": min_face,
            "any_orientation": any_orientation,
            "thorough": thorough,
            "score": score,
            "nms": nms,
            "top_k": top_k,
            "decoder": decoder,
        }
        if isinstance(size, str):
            own["size"] = size
        else:
            own["size"], (own["width"], own["height"]) = "fixed", size
        self._detector = _faces.load(os.fspath(path), session, own)
        self.decoder, self.runtime, self.warnings = self._detector.about()

    def detect(self, picture: Picture | str | os.PathLike[str] | bytes) -> Detection:
        """Faces of a picture, of a file, or of a file's bytes."""
        found = self._detector.detect(_picture(picture))
        return Detection(
            faces=[Face(*plain) for plain in found["faces"]],
            runtime=found["runtime"],
            provider=found["provider"],
            times_ms=found["times_ms"],
            turned=found["turned"],
            smallest=found["smallest"],
        )


def _picture(source: Any) -> Any:
    return read(source) if isinstance(source, (str, os.PathLike, bytes)) else source


def read(source: str | os.PathLike[str] | bytes) -> Picture:
    """The picture in a file or in its bytes, upright."""
    found: Picture = _faces.read(source if isinstance(source, bytes) else os.fspath(source))
    return found


def write(path: str | os.PathLike[str], picture: Picture) -> None:
    """Writes a picture in the format that the name ends with. The file appears whole or not at all."""
    _faces.write(os.fspath(path), picture)


def sharpness(picture: Picture) -> float:
    """Variance of the Laplacian of the luma, at most 512 pixels long."""
    found: float = _faces.sharpness(picture)
    return found


def judge(picture: Picture, face: Face) -> Quality:
    return Quality(**_faces.judge(picture, face._plain()))


def pick(picture: Picture, faces: Sequence[Face], which: str | int = "all") -> list[Face]:
    """which: "all", "largest", "best", or a number that counts from 1; beyond the last: an empty list."""
    word, n = ("nth", which) if isinstance(which, int) else (which, 1)
    return [faces[i] for i in _faces.pick(picture, [f._plain() for f in faces], word, n)]


def presets() -> list[Preset]:
    return [Preset(*p) for p in _faces.presets()]


def _crop_options(options: Mapping[str, Any]) -> dict[str, Any]:
    known = "preset width height face_height position offset_x offset_y fill colour align_eyes shape radius".split()
    for name in options:
        if name not in known:
            raise TypeError(f"crop takes no option '{name}'; known: {', '.join(known)}")
    return dict(options)


def crop(picture: Picture, face: Face, **options: Any) -> Picture:
    """The face as a picture of its own.

    preset; width, height: pixels; face_height: per cent of the height; position: "center", "rule-of-thirds", "custom" with offset_x and offset_y
    from -1 to 1; fill: "colour" (with colour=(red, green, blue[, opacity])), "blur", "edge" or "shift"; align_eyes; shape: "rectangle",
    "rounded" (with radius) or "ellipse". What is given wins over the preset.
    """
    found: Picture = _faces.crop(picture, face._plain(), _crop_options(options))
    return found


def crop_box(face: Face, **options: Any) -> tuple[float, float, float, float]:
    """The part (x, y, width, height) of the picture that crop() takes."""
    found: tuple[float, float, float, float] = _faces.crop_box(face._plain(), _crop_options(options))
    return found


def align(picture: Picture, face: Face, size: int = 112) -> Picture:
    """size x size pixels with eyes, nose and mouth at the places of ArcFace's template."""
    found: Picture = _faces.align(picture, face._plain(), size)
    return found


def alignment(face: Face, size: int = 112) -> list[list[float]]:
    """The 2x3 matrix of align(), from the picture to the result."""
    return [list(row) for row in _faces.alignment(face._plain(), size)]


def enhance(picture: Picture, settings: str = "natural", face: Face | None = None) -> Picture:
    """settings: "natural", "vivid", "professional", or "key=value,..." with the names of docs/faces/faces.md. `face` lies in `picture`."""
    found: Picture = _faces.enhance(picture, settings, None if face is None else face._plain())
    return found


def blur(picture: Picture, faces: Iterable[Face], method: str = "blur", margin: float = 0.1) -> Picture:
    """A copy in which nobody recognises the faces. method: "blur", "mosaic" or "box"."""
    found: Picture = _faces.anonymise(picture, [f._plain() for f in faces], method, margin)
    return found


__all__ = [
    "Detection",
    "Face",
    "FaceDetector",
    "Preset",
    "Quality",
    "align",
    "alignment",
    "blur",
    "crop",
    "crop_box",
    "enhance",
    "judge",
    "pick",
    "presets",
    "read",
    "sharpness",
    "write",
]
