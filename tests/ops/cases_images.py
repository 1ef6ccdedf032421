"""ImageDecoder, against Pillow (which its reference implementation uses)."""

import io

import numpy as np
from PIL import Image


def encoded(picture, kind, **options):
    out = io.BytesIO()
    picture.save(out, kind, **options)
    return out.getvalue()


def images(r):
    pixels = r.ints(0, 256, 4, 5, 3, dtype=np.uint8)
    rgb = Image.fromarray(pixels)
    grey = rgb.convert("L")
    exif = Image.Exif()
    exif[0x0112] = 6
    files = {
        "BMP": encoded(rgb, "BMP"), "BMP grey": encoded(grey, "BMP"), "BMP one bit": encoded(rgb.convert("1"), "BMP"),
        "BMP palette": encoded(rgb.quantize(7), "BMP"), "BMP 32 bits": encoded(rgb.convert("RGBA"), "BMP"),
        "PPM": encoded(rgb, "PPM"), "PGM": encoded(grey, "PPM"), "PBM": encoded(rgb.convert("1"), "PPM"),
        "PPM text": b"P3 # red, then grey\n2 1\n255\n255 0 0\n128 128 128\n",
        "PGM 16 bits": b"P5\n2 1\n255\n\x00\xff",
        "PBM text": b"P1\n3 2\n1 0 1\n010\n",
        "PNG": encoded(rgb, "PNG"), "PNG opacity": encoded(rgb.convert("RGBA"), "PNG"), "PNG palette": encoded(rgb.quantize(7), "PNG"),
        "TIFF": encoded(rgb, "TIFF"), "TIFF grey": encoded(grey, "TIFF"), "TIFF palette": encoded(rgb.quantize(7), "TIFF"),
        "TIFF one bit": encoded(rgb.convert("1"), "TIFF"), "TIFF LZW": encoded(rgb.resize((40, 30)), "TIFF", compression="tiff_lzw"),
        "TIFF Deflate": encoded(rgb, "TIFF", compression="tiff_adobe_deflate"),
        "TIFF PackBits": encoded(rgb, "TIFF", compression="packbits"),
        "TIFF LZW differences": encoded(rgb, "TIFF", compression="tiff_lzw", tiffinfo={317: 2}),
        "WebP": encoded(rgb, "WEBP", lossless=True),
        "JPEG": encoded(rgb, "JPEG"), "JPEG that asks to be turned": encoded(rgb, "JPEG", exif=exif),
        "JPEG 2000": encoded(rgb, "JPEG2000"), "JPEG 2000 grey": encoded(grey, "JPEG2000"),
    }
    for name, data in files.items():
        for form, mode in (("RGB", "RGB"), ("BGR", "RGB"), ("Grayscale", "L")):
            if form != "RGB" and name not in ("BMP", "PNG palette", "TIFF grey"):
                continue
            want = np.asarray(Image.open(io.BytesIO(data)).convert(mode))
            want = want[..., ::-1] if form == "BGR" else want.reshape(*want.shape[:2], -1)
            r.case("ImageDecoder", [np.frombuffer(data, np.uint8)], name=f"{name} {form}", domain="", opset=20, pixel_format=form, expect=[want])
    cut = {"BMP": 60, "PPM": 40, "PNG": 50, "TIFF": 100, "TIFF LZW": 200, "TIFF Deflate": 150, "WebP": 30, "JPEG": 120, "JPEG 2000": 90}
    for name, length in cut.items():
        r.case("ImageDecoder", [np.frombuffer(files[name][:length], np.uint8)], name=f"{name} cut short", domain="", opset=20,
               expect=[np.zeros((0, 0, 3), np.uint8)])
    r.case("ImageDecoder", [np.frombuffer(b"nothing that anybody knows", np.uint8)], name="unknown", domain="", opset=20, pixel_format="Grayscale",
           expect=[np.zeros((0, 0, 1), np.uint8)])
    r.fails("ImageDecoder", """
input x: uint8[4] = 1 2 3 4
y = ImageDecoder(x) {pixel_format="CMYK"}
output y""", "must be RGB, BGR or Grayscale")


CASES = [images]
