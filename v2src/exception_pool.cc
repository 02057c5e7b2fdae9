// libstdc++ keeps 71 KiB for exceptions thrown while memory is exhausted, and gives them back to nobody. In a library with a libstdc++
// of its own (FLYDSL_AOT_STATIC_CXX) that is lost with every dlclose.
#ifdef FLYDSL_AOT_OWN_LIBSTDCXX

namespace __gnu_cxx {
void __freeres();  // eh_alloc.cc of libstdc++: what leak checkers call at a program's end
}

namespace {
__attribute__((destructor)) void free_exception_pool() {
  __gnu_cxx::__freeres();
}
}  // namespace

#endif
