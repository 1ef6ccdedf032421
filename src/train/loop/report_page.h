#pragma once
// The fixed parts of a training's report.

namespace sdx::train::loop {

extern const char* const kReportStyle;   // CSS
extern const char* const kReportScript;  // JavaScript; reads the JSON in the element "data"

}  // namespace sdx::train::loop
