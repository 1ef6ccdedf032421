#pragma once
// The fixed parts of the HTML report: everything that a browser needs, without addresses of any kind.

namespace sdx::benchmark {

extern const char* const kReportStyle;   // CSS
extern const char* const kReportScript;  // JavaScript; reads the JSON in the element "data"

}  // namespace sdx::benchmark
