// The functions that the program calls in place of PoCL's. Each calls PoCL's, and records the effect on buffers.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "capture.h"
#include "device.h"
#include "unknown.h"

namespace capture {
namespace {

using Lock = std::lock_guard<std::recursive_mutex>;

Capture& c() { return Capture::get(); }

// A region of rows: one copy per row, fewer where rows adjoin.
template <class Each>
void each_row(const size_t* origin, const size_t* region, size_t row_pitch, size_t slice_pitch, Each each) {
  if (!row_pitch) row_pitch = region[0];
  if (!slice_pitch) slice_pitch = row_pitch * region[1];
  size_t first = origin[0] + origin[1] * row_pitch + origin[2] * slice_pitch;
  bool rows_adjoin = row_pitch == region[0], slices_adjoin = rows_adjoin && slice_pitch == region[0] * region[1];
  if (slices_adjoin) return each(first, 0, region[0] * region[1] * region[2]);
  for (size_t z = 0; z < region[2]; z++) {
    if (rows_adjoin) {
      each(first + z * slice_pitch, z * region[1], region[0] * region[1]);
      continue;
    }
    for (size_t y = 0; y < region[1]; y++) each(first + z * slice_pitch + y * row_pitch, z * region[1] + y, region[0]);
  }
}

// Devices.

// Most programs that request a GPU end if there is none. So PoCL's CPU takes the GPU's role, and the user is told.
cl_device_type role_of_gpu() {
  static const bool is_reported = [] {
    if (!getenv("BUDDYSIM_CAPTURE_REPORT_AS_GPU"))
      fputs("buddysim: warning: the program requests a GPU: PoCL's CPU takes its role; --report-as-gpu: with a GPU's limits\n",
            stderr);
    return true;
  }();
  (void)is_reported;
  return CL_DEVICE_TYPE_ALL;
}

bool lacks_gpu(cl_device_type type, cl_int error) { return error == CL_DEVICE_NOT_FOUND && (type & CL_DEVICE_TYPE_GPU); }

cl_int CL_API_CALL get_device_ids(cl_platform_id platform, cl_device_type type, cl_uint n, cl_device_id* devices,
                                  cl_uint* count) {
  cl_int error = c().real.clGetDeviceIDs(platform, type, n, devices, count);
  return lacks_gpu(type, error) ? c().real.clGetDeviceIDs(platform, role_of_gpu(), n, devices, count) : error;
}

cl_context CL_API_CALL create_context_from_type(const cl_context_properties* properties, cl_device_type type,
                                                void(CL_CALLBACK* notify)(const char*, const void*, size_t, void*),
                                                void* data, cl_int* error) {
  cl_int result = CL_SUCCESS;
  cl_context context = c().real.clCreateContextFromType(properties, type, notify, data, &result);
  if (lacks_gpu(type, result))
    context = c().real.clCreateContextFromType(properties, role_of_gpu(), notify, data, &result);
  if (error) *error = result;
  return context;
}

// Buffers.

bool brings_contents(cl_mem_flags flags) { return flags & (CL_MEM_COPY_HOST_PTR | CL_MEM_USE_HOST_PTR); }

cl_mem CL_API_CALL create_buffer(cl_context context, cl_mem_flags flags, size_t bytes, void* initial, cl_int* error) {
  cl_mem memory = c().real.clCreateBuffer(context, flags, bytes, initial, error);
  if (memory) c().add_buffer(memory, context, bytes, brings_contents(flags));
  return memory;
}

cl_mem CL_API_CALL create_buffer_with_properties(cl_context context, const cl_mem_properties* properties,
                                                 cl_mem_flags flags, size_t bytes, void* initial, cl_int* error) {
  cl_mem memory = c().real.clCreateBufferWithProperties(context, properties, flags, bytes, initial, error);
  if (memory) c().add_buffer(memory, context, bytes, brings_contents(flags));
  return memory;
}

cl_mem CL_API_CALL create_sub_buffer(cl_mem parent, cl_mem_flags flags, cl_buffer_create_type type, const void* info,
                                     cl_int* error) {
  cl_mem memory = c().real.clCreateSubBuffer(parent, flags, type, info, error);
  auto* region = (const cl_buffer_region*)info;
  if (memory && region) c().add_sub_buffer(memory, parent, region->origin, region->size);
  return memory;
}

cl_int CL_API_CALL retain_memory(cl_mem memory) {
  cl_int error = c().real.clRetainMemObject(memory);
  if (!error) c().retain(memory);
  return error;
}

cl_int CL_API_CALL release_memory(cl_mem memory) {
  c().release(memory);
  return c().real.clReleaseMemObject(memory);
}

// Copies and fills.

cl_int CL_API_CALL read_buffer(cl_command_queue queue, cl_mem memory, cl_bool blocking, size_t offset, size_t bytes,
                               void* to, cl_uint n, const cl_event* waits, cl_event* event) {
  c().see_queue(queue);
  cl_int error = c().real.clEnqueueReadBuffer(queue, memory, blocking, offset, bytes, to, n, waits, event);
  if (!error) c().copy(1, memory, offset, bytes);
  return error;
}

cl_int CL_API_CALL write_buffer(cl_command_queue queue, cl_mem memory, cl_bool blocking, size_t offset, size_t bytes,
                                const void* from, cl_uint n, const cl_event* waits, cl_event* event) {
  c().see_queue(queue);
  cl_int error = c().real.clEnqueueWriteBuffer(queue, memory, blocking, offset, bytes, from, n, waits, event);
  if (!error) c().copy(0, memory, offset, bytes);
  return error;
}

cl_int CL_API_CALL read_rect(cl_command_queue queue, cl_mem memory, cl_bool blocking, const size_t* origin,
                             const size_t* memory_origin, const size_t* region, size_t row, size_t slice,
                             size_t memory_row, size_t memory_slice, void* to, cl_uint n, const cl_event* waits,
                             cl_event* event) {
  cl_int error = c().real.clEnqueueReadBufferRect(queue, memory, blocking, origin, memory_origin, region, row, slice,
                                                  memory_row, memory_slice, to, n, waits, event);
  if (!error)
    each_row(origin, region, row, slice, [&](size_t at, size_t, size_t bytes) { c().copy(1, memory, at, bytes); });
  return error;
}

cl_int CL_API_CALL write_rect(cl_command_queue queue, cl_mem memory, cl_bool blocking, const size_t* origin,
                              const size_t* memory_origin, const size_t* region, size_t row, size_t slice,
                              size_t memory_row, size_t memory_slice, const void* from, cl_uint n,
                              const cl_event* waits, cl_event* event) {
  cl_int error = c().real.clEnqueueWriteBufferRect(queue, memory, blocking, origin, memory_origin, region, row, slice,
                                                   memory_row, memory_slice, from, n, waits, event);
  if (!error)
    each_row(origin, region, row, slice, [&](size_t at, size_t, size_t bytes) { c().copy(0, memory, at, bytes); });
  return error;
}

cl_int CL_API_CALL copy_buffer(cl_command_queue queue, cl_mem from, cl_mem to, size_t from_offset, size_t to_offset,
                               size_t bytes, cl_uint n, const cl_event* waits, cl_event* event) {
  cl_int error = c().real.clEnqueueCopyBuffer(queue, from, to, from_offset, to_offset, bytes, n, waits, event);
  if (!error) c().copy(2, to, to_offset, bytes, from, from_offset);
  return error;
}

cl_int CL_API_CALL copy_rect(cl_command_queue queue, cl_mem from, cl_mem to, const size_t* from_origin,
                             const size_t* to_origin, const size_t* region, size_t from_row, size_t from_slice,
                             size_t to_row, size_t to_slice, cl_uint n, const cl_event* waits, cl_event* event) {
  cl_int error = c().real.clEnqueueCopyBufferRect(queue, from, to, from_origin, to_origin, region, from_row,
                                                  from_slice, to_row, to_slice, n, waits, event);
  if (error) return error;
  size_t row = from_row ? from_row : region[0], slice = from_slice ? from_slice : row * region[1];
  size_t row_to = to_row ? to_row : region[0], slice_to = to_slice ? to_slice : row_to * region[1];
  size_t first = from_origin[0] + from_origin[1] * row + from_origin[2] * slice;
  size_t first_to = to_origin[0] + to_origin[1] * row_to + to_origin[2] * slice_to;
  for (size_t z = 0; z < region[2]; z++)
    for (size_t y = 0; y < region[1]; y++)
      c().copy(2, to, first_to + z * slice_to + y * row_to, region[0], from, first + z * slice + y * row);
  return error;
}

cl_int CL_API_CALL fill_buffer(cl_command_queue queue, cl_mem memory, const void* pattern, size_t pattern_bytes,
                               size_t offset, size_t bytes, cl_uint n, const cl_event* waits, cl_event* event) {
  cl_int error =
      c().real.clEnqueueFillBuffer(queue, memory, pattern, pattern_bytes, offset, bytes, n, waits, event);
  if (!error) c().fill(memory, offset, bytes, pattern, pattern_bytes);
  return error;
}

void* CL_API_CALL map_buffer(cl_command_queue queue, cl_mem memory, cl_bool blocking, cl_map_flags flags,
                             size_t offset, size_t bytes, cl_uint n, const cl_event* waits, cl_event* event,
                             cl_int* error) {
  c().see_queue(queue);
  void* address = c().real.clEnqueueMapBuffer(queue, memory, blocking, flags, offset, bytes, n, waits, event, error);
  if (!address) return address;
  if (flags & CL_MAP_READ) c().copy(1, memory, offset, bytes);
  Lock lock(c().state);
  c().mappings.insert({address, {memory, offset, bytes, flags}});
  return address;
}

cl_int CL_API_CALL unmap(cl_command_queue queue, cl_mem memory, void* address, cl_uint n, const cl_event* waits,
                         cl_event* event) {
  cl_int error = c().real.clEnqueueUnmapMemObject(queue, memory, address, n, waits, event);
  if (!error) c().end_mapping(memory, address);
  return error;
}

// Programs and kernels.

// Called for a new program, and before it is built again.
void forget_program(cl_program program, const char* options = nullptr) {
  Lock lock(c().state);
  c().modules.erase(program);
  c().flushing.erase(program);
  if (options && strstr(options, "-cl-denorms-are-zero")) c().flushing.insert(program);
}

void forget_kernel(cl_kernel kernel) {
  Lock lock(c().state);
  c().kernels.erase(kernel);
}

cl_int CL_API_CALL build_program(cl_program program, cl_uint n, const cl_device_id* devices, const char* options,
                                 void(CL_CALLBACK* notify)(cl_program, void*), void* data) {
  forget_program(program, options);
  return c().real.clBuildProgram(program, n, devices, options, notify, data);
}

cl_program CL_API_CALL create_program_with_source(cl_context context, cl_uint n, const char** texts,
                                                  const size_t* lengths, cl_int* error) {
  cl_program program = c().real.clCreateProgramWithSource(context, n, texts, lengths, error);
  forget_program(program);
  return program;
}

cl_program CL_API_CALL create_program_with_binary(cl_context context, cl_uint n, const cl_device_id* devices,
                                                  const size_t* lengths, const unsigned char** binaries,
                                                  cl_int* status, cl_int* error) {
  cl_program program = c().real.clCreateProgramWithBinary(context, n, devices, lengths, binaries, status, error);
  forget_program(program);
  return program;
}

cl_program CL_API_CALL link_program(cl_context context, cl_uint n_devices, const cl_device_id* devices,
                                    const char* options, cl_uint n, const cl_program* programs,
                                    void(CL_CALLBACK* notify)(cl_program, void*), void* data, cl_int* error) {
  cl_program program =
      c().real.clLinkProgram(context, n_devices, devices, options, n, programs, notify, data, error);
  forget_program(program, options);
  return program;
}

cl_kernel CL_API_CALL create_kernel(cl_program program, const char* name, cl_int* error) {
  cl_kernel kernel = c().real.clCreateKernel(program, name, error);
  forget_kernel(kernel);
  return kernel;
}

cl_int CL_API_CALL create_kernels(cl_program program, cl_uint n, cl_kernel* kernels, cl_uint* count) {
  cl_uint n_kernels = 0;
  cl_int error = c().real.clCreateKernelsInProgram(program, n, kernels, &n_kernels);
  if (count) *count = n_kernels;
  if (!error && kernels)
    for (cl_uint i = 0; i < n && i < n_kernels; i++) forget_kernel(kernels[i]);
  return error;
}

cl_kernel CL_API_CALL clone_kernel(cl_kernel kernel, cl_int* error) {
  cl_kernel clone = c().real.clCloneKernel(kernel, error);
  if (!clone) return clone;
  Lock lock(c().state);
  forget_kernel(clone);
  if (KernelObject* object = c().kernel_object(kernel)) c().kernels[clone] = *object;
  return clone;
}

cl_int CL_API_CALL set_kernel_arg(cl_kernel kernel, cl_uint index, size_t bytes, const void* value) {
  cl_int error = c().real.clSetKernelArg(kernel, index, bytes, value);
  if (error) return error;
  Lock lock(c().state);
  KernelObject* object = c().kernel_object(kernel);
  if (!object || index >= object->values.size()) return error;
  Value& v = object->values[index];
  v.set = true;
  v.shared = false;
  v.local_bytes = value ? 0 : bytes;
  v.bytes.assign((const unsigned char*)value, (const unsigned char*)value + (value ? bytes : 0));
  if (!value || bytes != sizeof(cl_mem)) return error;
  cl_mem memory;
  memcpy(&memory, value, sizeof memory);
  if (c().buffers.count(memory)) c().name_buffer(*object, index, memory);
  return error;
}

cl_int CL_API_CALL enqueue_ndrange(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const size_t* offset,
                                   const size_t* global, const size_t* local, cl_uint n, const cl_event* waits,
                                   cl_event* event) {
  return enqueue_launch(queue, kernel, dimensions, offset, global, local, n, waits, event);
}

cl_int CL_API_CALL enqueue_task(cl_command_queue queue, cl_kernel kernel, cl_uint n, const cl_event* waits,
                                cl_event* event) {
  size_t one = 1;
  return enqueue_launch(queue, kernel, 1, nullptr, &one, &one, n, waits, event);
}

// Events.

cl_event CL_API_CALL create_user_event(cl_context context, cl_int* error) {
  cl_event event = c().real.clCreateUserEvent(context, error);
  Lock lock(c().state);
  if (event) c().user_events.insert(event);
  return event;
}

cl_int CL_API_CALL set_user_event_status(cl_event event, cl_int status) {
  {
    Lock lock(c().state);
    c().user_events.erase(event);
  }
  return c().real.clSetUserEventStatus(event, status);
}

}  // namespace

void install_hooks(cl_icd_dispatch& table) {
  c().real = table;
  install_unknown(table);
  install_gpu(table);
  install_images(table);
  install_shared(table);
  table.clGetDeviceIDs = get_device_ids;
  table.clCreateContextFromType = create_context_from_type;
  table.clCreateBuffer = create_buffer;
  if (table.clCreateBufferWithProperties) table.clCreateBufferWithProperties = create_buffer_with_properties;
  table.clCreateSubBuffer = create_sub_buffer;
  table.clRetainMemObject = retain_memory;
  table.clReleaseMemObject = release_memory;
  table.clEnqueueReadBuffer = read_buffer;
  table.clEnqueueWriteBuffer = write_buffer;
  table.clEnqueueReadBufferRect = read_rect;
  table.clEnqueueWriteBufferRect = write_rect;
  table.clEnqueueCopyBuffer = copy_buffer;
  table.clEnqueueCopyBufferRect = copy_rect;
  table.clEnqueueFillBuffer = fill_buffer;
  table.clEnqueueMapBuffer = map_buffer;
  table.clEnqueueUnmapMemObject = unmap;
  table.clBuildProgram = build_program;
  table.clCreateProgramWithSource = create_program_with_source;
  table.clCreateProgramWithBinary = create_program_with_binary;
  table.clLinkProgram = link_program;
  table.clCreateKernel = create_kernel;
  table.clCreateKernelsInProgram = create_kernels;
  if (table.clCloneKernel) table.clCloneKernel = clone_kernel;
  table.clSetKernelArg = set_kernel_arg;
  table.clEnqueueNDRangeKernel = enqueue_ndrange;
  table.clEnqueueTask = enqueue_task;
  table.clCreateUserEvent = create_user_event;
  table.clSetUserEventStatus = set_user_event_status;
}

}  // namespace capture
