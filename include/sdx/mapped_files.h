/* <sdx/mapped_files.hpp> for C: model files that are cut short while they are in use. */
#ifndef SDX_MAPPED_FILES_H
#define SDX_MAPPED_FILES_H

#include <sdx/sdx.h>

#ifdef __cplusplus
extern "C" {
#endif

/* From now on, a mapped file that is cut short while it is in use makes runs fail with SDX_IO instead of ending the process by
 * SIGBUS. Installs a handler of that signal for the whole process, which passes other faults on to the handler before it. */
SDX_C_API void sdx_survive_mapped_faults(void);

/* SDX_IO if any part of a mapped file could not be read since then. Sessions check this by themselves. */
SDX_C_API sdx_status sdx_check_mapped_files(void);

#ifdef __cplusplus
}
#endif

#endif
