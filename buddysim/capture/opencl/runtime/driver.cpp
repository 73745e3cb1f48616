// The OpenCL driver that the program's loader finds: PoCL, with the capture's hooks in its table of functions.
#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "capture.h"

using capture::Capture;

namespace {

void* pocl() {
  static void* handle = [] {
    const char* path = getenv("BUDDYSIM_CAPTURE_DRIVER");
    void* library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
    if (!library) fprintf(stderr, "buddysim: error: PoCL can't be loaded: %s\n", path ? dlerror() : "no path");
    return library;
  }();
  return handle;
}

using GetAddress = void*(CL_API_CALL*)(const char*);

void* function_of_pocl(const char* name) {
  auto get = pocl() ? (GetAddress)dlsym(pocl(), "clGetExtensionFunctionAddress") : nullptr;
  return get ? get(name) : nullptr;
}

void make_writable(void* begin, size_t bytes) {
  uintptr_t page = sysconf(_SC_PAGESIZE), first = (uintptr_t)begin / page * page;
  mprotect((void*)first, (uintptr_t)begin + bytes - first, PROT_READ | PROT_WRITE);
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) cl_int CL_API_CALL clIcdGetPlatformIDsKHR(cl_uint n, cl_platform_id* platforms,
                                                                                 cl_uint* count) {
  auto get = (clIcdGetPlatformIDsKHR_fn)function_of_pocl("clIcdGetPlatformIDsKHR");
  if (!get) return CL_PLATFORM_NOT_FOUND_KHR;
  static bool installed = [get] {
    cl_platform_id platform;
    if (get(1, &platform, nullptr)) return false;
    auto* table = *(cl_icd_dispatch**)platform;
    if (!Capture::get().wire.open()) return false;
    make_writable(table, sizeof *table);
    capture::install_hooks(*table);
    atexit([] { Capture::get().at_exit(); });
    pthread_atfork(nullptr, nullptr, [] { Capture::get().wire.leave(); });
    return true;
  }();
  (void)installed;
  return get(n, platforms, count);
}

__attribute__((visibility("default"))) void* CL_API_CALL clGetExtensionFunctionAddress(const char* name) {
  if (!strcmp(name, "clIcdGetPlatformIDsKHR")) return (void*)clIcdGetPlatformIDsKHR;
  return function_of_pocl(name);
}

}
