// Shared virtual memory: in PoCL, the program's own memory at the same address in program and kernels.
#include <cstring>

#include "capture.h"

namespace capture {
namespace {

using Lock = std::lock_guard<std::recursive_mutex>;

Capture& c() { return Capture::get(); }

uint64_t offset_in(cl_mem memory, const void* address) { return (const char*)address - (const char*)memory; }

void* CL_API_CALL alloc(cl_context context, cl_svm_mem_flags flags, size_t bytes, cl_uint alignment) {
  void* address = c().real.clSVMAlloc(context, flags, bytes, alignment);
  if (address) c().add_shared(address, context, bytes);
  return address;
}

void CL_API_CALL free_now(cl_context context, void* address) {
  c().release((cl_mem)address);
  c().real.clSVMFree(context, address);
}

cl_int CL_API_CALL free_later(cl_command_queue queue, cl_uint n, void* addresses[],
                              void(CL_CALLBACK* freeing)(cl_command_queue, cl_uint, void*[], void*), void* data,
                              cl_uint n_waits, const cl_event* waits, cl_event* event) {
  for (cl_uint i = 0; i < n && !freeing; i++) c().release((cl_mem)addresses[i]);  // else the program frees them itself
  return c().real.clEnqueueSVMFree(queue, n, addresses, freeing, data, n_waits, waits, event);
}

cl_int CL_API_CALL copy(cl_command_queue queue, cl_bool blocking, void* to, const void* from, size_t bytes, cl_uint n,
                        const cl_event* waits, cl_event* event) {
  c().see_queue(queue);
  cl_int error = c().real.clEnqueueSVMMemcpy(queue, blocking, to, from, bytes, n, waits, event);
  if (error) return error;
  cl_mem target = c().shared_at(to), source = c().shared_at(from);
  if (target && source)
    c().copy(2, target, offset_in(target, to), bytes, source, offset_in(source, from));
  else if (target)
    c().copy(0, target, offset_in(target, to), bytes);
  else if (source)
    c().copy(1, source, offset_in(source, from), bytes);
  return error;
}

cl_int CL_API_CALL fill(cl_command_queue queue, void* to, const void* pattern, size_t pattern_bytes, size_t bytes,
                        cl_uint n, const cl_event* waits, cl_event* event) {
  c().see_queue(queue);
  cl_int error = c().real.clEnqueueSVMMemFill(queue, to, pattern, pattern_bytes, bytes, n, waits, event);
  cl_mem target = c().shared_at(to);
  if (!error && target) c().fill(target, offset_in(target, to), bytes, pattern, pattern_bytes);
  return error;
}

cl_int CL_API_CALL map(cl_command_queue queue, cl_bool blocking, cl_map_flags flags, void* address, size_t bytes,
                       cl_uint n, const cl_event* waits, cl_event* event) {
  c().see_queue(queue);
  cl_int error = c().real.clEnqueueSVMMap(queue, blocking, flags, address, bytes, n, waits, event);
  cl_mem memory = c().shared_at(address);
  if (error || !memory) return error;
  if (flags & CL_MAP_READ) c().copy(1, memory, offset_in(memory, address), bytes);
  Lock lock(c().state);
  c().mappings.insert({address, {memory, offset_in(memory, address), bytes, flags}});
  return error;
}

cl_int CL_API_CALL unmap(cl_command_queue queue, void* address, cl_uint n, const cl_event* waits, cl_event* event) {
  cl_int error = c().real.clEnqueueSVMUnmap(queue, address, n, waits, event);
  if (!error) c().end_mapping(c().shared_at(address), address);
  return error;
}

cl_int CL_API_CALL set_argument(cl_kernel kernel, cl_uint index, const void* value) {
  cl_int error = c().real.clSetKernelArgSVMPointer(kernel, index, value);
  if (error) return error;
  Lock lock(c().state);
  KernelObject* object = c().kernel_object(kernel);
  if (!object || index >= object->values.size()) return error;
  Value& v = object->values[index];
  v.set = v.shared = true;
  v.local_bytes = 0;
  v.bytes.resize(sizeof value);
  memcpy(v.bytes.data(), &value, sizeof value);
  if (cl_mem memory = c().shared_at(value)) c().name_buffer(*object, index, memory);
  return error;
}

}  // namespace

void install_shared(cl_icd_dispatch& table) {
  if (!table.clSVMAlloc) return;
  table.clSVMAlloc = alloc;
  table.clSVMFree = free_now;
  table.clEnqueueSVMFree = free_later;
  table.clEnqueueSVMMemcpy = copy;
  table.clEnqueueSVMMemFill = fill;
  table.clEnqueueSVMMap = map;
  table.clEnqueueSVMUnmap = unmap;
  table.clSetKernelArgSVMPointer = set_argument;
}

}  // namespace capture
