#pragma once
// The steps of faces::enhance(), in the order of its settings. All keep opacity as it is; those that need colours leave grey
// pictures alone.

#include <sdx/faces.hpp>

namespace sdx::vision {

// Throws Error(invalid_argument) for settings out of range.
void check_enhance(const faces::Enhance& settings);

// Multiplies red, green and blue so that their means are equal (grey world), each by 0.5 to 2; the mean luma stays. Pixels that
// are nearly black or white do not count: they say nothing about the light.
void balance_colours(media::Image& picture);

// Within a circle around each eye, as wide as a third of the distance between the eyes, pixels whose red is truly that of a lit
// retina lose it: above 70 and over 1.8 times the greater of green and blue, which skin in warm light is not. Nothing happens
// where over half of the circle is so red (skin, or a red light), or where the points of the eyes are missing.
void remove_red_eyes(media::Image& picture, const faces::Face& face);

// Exposure in linear light (sRGB's curve), then v * brightness, then 127.5 + (v - 127.5) * contrast; rounded once.
void tone(media::Image& picture, const faces::Enhance& settings);

// Luma + saturation * (colour - luma).
void saturate(media::Image& picture, double saturation);

// A bilateral filter (3 pixels, 25 levels) mixed in with at most the weight `share`, where the pixel has the colour of skin and
// lies in the ellipse of the face's box, which ends softly.
void smooth_skin(media::Image& picture, const faces::Face& face, double share);

// Adds amount * (luma - blurred luma) to all colours.
void sharpen(media::Image& picture, double amount, double radius);

// Blurs what lies outside the ellipse of 1.8 times the face's box's width and 2 times its height; it begins softly over another
// half of that. The face's own colours do not bleed into the background.
void blur_background(media::Image& picture, const faces::Face& face, double radius);

}  // namespace sdx::vision
