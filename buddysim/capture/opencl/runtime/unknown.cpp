#include "capture.h"

#include "unknown.h"

namespace capture {
namespace {

// A function of the right type for every member of the table: records the name, then calls PoCL's function.
template <auto Member, class Function>
struct Noted;

template <auto Member, class Result, class... Parameters>
struct Noted<Member, Result(CL_API_CALL*)(Parameters...)> {
  static const char* name;
  static Result CL_API_CALL call(Parameters... parameters) {
    Capture::get().note(std::string(name) + " is not known to the capture: what it does to memory is not in the trace");
    return (Capture::get().real.*Member)(parameters...);
  }
};

template <auto Member, class Result, class... Parameters>
const char* Noted<Member, Result(CL_API_CALL*)(Parameters...)>::name;

template <auto Member, class Function>
void install(cl_icd_dispatch& table, Function cl_icd_dispatch::*, const char* name) {
  if (!(table.*Member)) return;
  Noted<Member, Function>::name = name;
  table.*Member = Noted<Member, Function>::call;
}

}  // namespace

#define NOTED(function) install<&cl_icd_dispatch::function>(table, &cl_icd_dispatch::function, #function)

void install_unknown(cl_icd_dispatch& table) {
  NOTED(clEnqueueNativeKernel);
  NOTED(clCreatePipe);
  NOTED(clCreateFromGLBuffer);
  NOTED(clCreateFromGLTexture);
  NOTED(clCreateFromGLTexture2D);
  NOTED(clCreateFromGLTexture3D);
  NOTED(clCreateFromGLRenderbuffer);
  NOTED(clEnqueueAcquireGLObjects);
  NOTED(clEnqueueReleaseGLObjects);
  NOTED(clCreateFromEGLImageKHR);
  NOTED(clEnqueueAcquireEGLObjectsKHR);
  NOTED(clEnqueueReleaseEGLObjectsKHR);
}

}  // namespace capture
