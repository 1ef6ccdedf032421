/* A plugin of QEMU's user emulation that counts the instructions which a program executes, and writes the number to the file named by its
 * argument: `qemu-aarch64 -plugin count_instructions.so,out=FILE PROGRAM`. Debian 12 has no header for plugins, so this declares what it
 * uses of interface version 1 (QEMU 4.2 to 9.0). Instructions are counted block by block. */
#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

typedef uint64_t plugin_id;
struct qemu_plugin_tb;
typedef void (*on_translation)(plugin_id id, struct qemu_plugin_tb* block);
typedef void (*on_exit)(plugin_id id, void* data);

extern void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id, on_translation call);
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb* block);
extern void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb* block, int operation, void* to, uint64_t value);
extern void qemu_plugin_register_atexit_cb(plugin_id id, on_exit call, void* data);

EXPORT int qemu_plugin_version = 1;

static uint64_t executed;
static char file[4096];

static void count_block(plugin_id id, struct qemu_plugin_tb* block) {
  (void)id;
  enum { kAdd = 0 };
  qemu_plugin_register_vcpu_tb_exec_inline(block, kAdd, &executed, qemu_plugin_tb_n_insns(block));
}

static void write_count(plugin_id id, void* data) {
  (void)id;
  (void)data;
  FILE* out = fopen(file, "w");
  if (out == NULL) return;
  fprintf(out, "%" PRIu64 "\n", executed);
  fclose(out);
}

EXPORT int qemu_plugin_install(plugin_id id, const void* info, int argc, char** argv) {
  (void)info;
  if (argc != 1 || strncmp(argv[0], "out=", 4) != 0 || strlen(argv[0] + 4) >= sizeof(file)) {
    fputs("count_instructions: expected one argument, out=FILE\n", stderr);
    return -1;
  }
  strcpy(file, argv[0] + 4);
  qemu_plugin_register_vcpu_tb_trans_cb(id, count_block);
  qemu_plugin_register_atexit_cb(id, write_count, NULL);
  return 0;
}
