/* Faces in images, for C: a small part of <sdx/faces.hpp>. Link libsdx_vision. The rules of <sdx/sdx.h> apply: nothing throws,
 * errors are statuses with sdx_last_error(), the caller frees objects, and any number of threads may use one detector at once.
 * Pictures are uint8[height, width, channels], rows from top to bottom without padding: 1 channel (grey), 3 (red, green, blue)
 * or 4 (and opacity). Coordinates are pixels of the upright picture, continuous: pixel i covers [i, i+1). */
#ifndef SDX_FACES_H
#define SDX_FACES_H

#include <sdx/sdx.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sdx_face_detector sdx_face_detector;
typedef struct sdx_faces sdx_faces;

/* New members are added only at the end. */
typedef struct sdx_face {
  float x, y, width, height; /* the box */
  float score;               /* 0 to 1 */
  int has_points;            /* not 0: `points` are the right eye, left eye, nose, right and left corner of the mouth: x, y */
  float points[5][2];
  int turned; /* clockwise degrees by which the picture must be turned for the face to be upright: 90, 180, 270; else 0 */
} sdx_face;

/* Opens a detector model; its outputs determine its kind. `options` are session options and may be NULL. `settings` may be
 * NULL: "key=value,key=value" with runtime (auto, native, ort), size (auto, native, 640x480), score, nms (0 to 1), top_k,
 * min_face (pixels), any_orientation (0 or 1), thorough (0 or 1; for hiding faces), decoder. Returns SDX_INVALID_ARGUMENT for a
 * model that is not a detector, with the outputs seen and the decoders known. */
SDX_C_API sdx_status sdx_face_detector_open(const char* model, const sdx_options* options, const char* settings,
                                            sdx_face_detector** detector);
SDX_C_API void sdx_face_detector_free(sdx_face_detector* detector);

/* `pixels` are only read during the call. */
SDX_C_API sdx_status sdx_face_detector_detect(const sdx_face_detector* detector, const uint8_t* pixels, int width, int height,
                                              int channels, sdx_faces** faces);
/* A picture file of any format that libsdx reads, turned upright. */
SDX_C_API sdx_status sdx_face_detector_detect_file(const sdx_face_detector* detector, const char* path, sdx_faces** faces);

SDX_C_API size_t sdx_faces_count(const sdx_faces* faces);
/* Highest score first. Returns SDX_INVALID_ARGUMENT if `index` is out of range. */
SDX_C_API sdx_status sdx_faces_get(const sdx_faces* faces, size_t index, sdx_face* face);
/* The same for all of them: with any_orientation, by how many degrees the picture had to be turned. */
SDX_C_API int sdx_faces_turned(const sdx_faces* faces);
/* What ran: "native" or "ort"; "cpu", "cuda", ... */
SDX_C_API const char* sdx_faces_runtime(const sdx_faces* faces);
SDX_C_API const char* sdx_faces_provider(const sdx_faces* faces);
SDX_C_API void sdx_faces_free(sdx_faces* faces);

/* Crops a face out of an image file by a preset ("passport", ...; docs/faces/crops.md) and writes it atomically, in the format
 * given by the ending of `output`. */
SDX_C_API sdx_status sdx_face_crop_file(const char* picture, const sdx_face* face, const char* preset, const char* output);
/* Writes size x size pixels of red, green, blue to `out` (3 * size * size bytes), aligned to ArcFace's template. `size` is a
 * multiple of 112 or of 128. */
SDX_C_API sdx_status sdx_face_align(const uint8_t* pixels, int width, int height, int channels, const sdx_face* face, int size,
                                    uint8_t* out);

#ifdef __cplusplus
}
#endif

#endif
