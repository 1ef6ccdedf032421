/* Finds the faces of a picture by the C interface and writes each as a passport photograph.
 *
 *   sdx_example_face_crops yunet.onnx photo.jpg [face.png]
 *
 * face.png becomes face.png for the first face, face.png.2.png for the second and so on. */

#include <sdx/faces.h>
#include <stdio.h>

static int failed(const char* what) {
  fprintf(stderr, "%s: %s\n", what, sdx_last_error());
  return 1;
}

int main(int argc, char** argv) {
  sdx_face_detector* detector = NULL;
  sdx_faces* faces = NULL;
  size_t i;
  int status = 0;
  if (argc < 3) {
    fprintf(stderr, "usage: %s DETECTOR PICTURE [OUTPUT]\n", argv[0]);
    return 2;
  }
  if (sdx_face_detector_open(argv[1], NULL, "min_face=20", &detector) != SDX_OK) return failed("cannot open the detector");
  if (sdx_face_detector_detect_file(detector, argv[2], &faces) != SDX_OK) {
    status = failed("cannot find faces");
  } else {
    printf("%zu faces (%s, %s)\n", sdx_faces_count(faces), sdx_faces_runtime(faces), sdx_faces_provider(faces));
  }
  for (i = 0; status == 0 && i < sdx_faces_count(faces); ++i) {
    sdx_face face;
    char name[4096];
    sdx_faces_get(faces, i, &face);
    printf("  %.0f x %.0f pixels at (%.0f, %.0f), score %.3f\n", face.width, face.height, face.x, face.y, face.score);
    if (argc < 4) continue;
    if (i == 0) snprintf(name, sizeof name, "%s", argv[3]);
    if (i > 0) snprintf(name, sizeof name, "%s.%zu.png", argv[3], i + 1);
    if (sdx_face_crop_file(argv[2], &face, "passport", name) != SDX_OK) status = failed(name);
  }
  sdx_faces_free(faces);
  sdx_face_detector_free(detector);
  return status;
}
