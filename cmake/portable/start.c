// The start of programs. Since glibc 2.34, the file that every program begins with leaves it to the C library to run the
// program's constructors; older ones run what they are given for that. This definition stands between the two: it hands over a
// function, which both run, once.
typedef int Main(int, char**, char**);
typedef void Init(int, char**, char**);
typedef void Done(void);

extern Init* const __init_array_start[] __attribute__((visibility("hidden")));
extern Init* const __init_array_end[] __attribute__((visibility("hidden")));
extern void _init(void) __attribute__((visibility("hidden")));

int old_start(Main* main, int argc, char** argv, Init* init, Done* fini, Done* loader_fini, void* stack_end);
__asm__(".symver old_start,__libc_start_main@" START_VERSION);

static void run_constructors(int argc, char** argv, char** environment) {
  _init();
  for (Init* const* each = __init_array_start; each != __init_array_end; ++each) {
    (*each)(argc, argv, environment);
  }
}

__attribute__((visibility("hidden"))) int __libc_start_main(Main* main, int argc, char** argv, Init* init, Done* fini,
                                                            Done* loader_fini, void* stack_end) {
  return old_start(main, argc, argv, init != 0 ? init : run_constructors, fini, loader_fini, stack_end);
}
