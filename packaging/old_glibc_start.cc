// Of programs: how glibc before 2.34 starts one. It runs a program's constructors by the function that it is handed, which newer ones'
// crt1.o leaves out.
extern "C" {

using Function = void (*)(int argc, char **argv, char **environment);
extern Function __preinit_array_start[] __attribute__((visibility("hidden")));
extern Function __preinit_array_end[] __attribute__((visibility("hidden")));
extern Function __init_array_start[] __attribute__((visibility("hidden")));
extern Function __init_array_end[] __attribute__((visibility("hidden")));
void _init();

int flydsl_old_start(int (*main)(int, char **, char **), int argc, char **argv,
                     void (*init)(int, char **, char **), void (*fini)(), void (*unload)(),
                     void *stack_end);
__asm__(".symver flydsl_old_start,__libc_start_main@GLIBC_2.2.5");

static void construct(int argc, char **argv, char **environment) {
  for (Function *next = __preinit_array_start; next != __preinit_array_end; ++next)
    (*next)(argc, argv, environment);
  _init();
  for (Function *next = __init_array_start; next != __init_array_end; ++next)
    (*next)(argc, argv, environment);
}

// Destructors (_fini, .fini_array) are the loader's work in every version.
__attribute__((visibility("hidden"))) int __libc_start_main(int (*main)(int, char **, char **),
                                                            int argc, char **argv,
                                                            void (*)(int, char **, char **),
                                                            void (*)(), void (*unload)(),
                                                            void *stack_end) {
  return flydsl_old_start(main, argc, argv, construct, nullptr, unload, stack_end);
}
}
