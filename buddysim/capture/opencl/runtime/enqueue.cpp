// A kernel launch becomes a native kernel of PoCL: it waits, signals and is timed as the program requested, but it runs
// the capture's own code.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <stdexcept>

#include <xmmintrin.h>

#include "capture.h"

namespace capture {
namespace {

using Lock = std::lock_guard<std::recursive_mutex>;

struct Request {
  std::shared_ptr<Module> module;
  const Kernel* kernel;
  std::string name;
  Shape shape;
  uint64_t queue_number, shared_bytes;
  bool flushes_denormals;
  std::vector<Value> values;
  std::vector<int> buffer_index;   // per argument: among the buffers, -1 where it is none or null
  std::vector<uint64_t> origin;  // per argument: of a sub-buffer in its buffer
  std::vector<Buffer> buffers;   // whole ones
  std::vector<ImageDescription> images;  // per argument
  std::vector<BufferRange> shared;       // virtual memory: a kernel may reach all of it
};

struct Native {  // argument of the native kernel; PoCL replaces the buffers by their addresses
  Request* request;
  void* buffers[1];
};

// The processor's flags for numbers below the normal ones, while a kernel runs.
class Denormals {
 public:
  explicit Denormals(bool flush) : before_(_mm_getcsr()) {
    constexpr unsigned FLUSH_RESULTS = 0x8000, FLUSH_OPERANDS = 0x40;
    unsigned flags = before_ & ~(FLUSH_RESULTS | FLUSH_OPERANDS);
    _mm_setcsr(flush ? flags | FLUSH_RESULTS | FLUSH_OPERANDS : flags);
  }
  ~Denormals() { _mm_setcsr(before_); }

 private:
  unsigned before_;
};

void* aligned(std::vector<std::unique_ptr<char, decltype(&free)>>& memory, size_t bytes) {
  memory.emplace_back((char*)aligned_alloc(128, (std::max<size_t>(bytes, 1) + 127) / 128 * 128), &free);
  if (!memory.back()) throw std::bad_alloc();
  return memory.back().get();
}

void run(Request& request, void** buffer_addresses) {
  Capture& capture = Capture::get();
  std::vector<std::unique_ptr<char, decltype(&free)>> memory;
  std::vector<void*> pointers(request.values.size()), arguments(request.values.size());
  for (size_t i = 0; i < request.values.size(); i++) {
    const Argument& argument = request.kernel->arguments[i];
    if (argument.kind == VALUE) {
      size_t bytes = request.values[i].bytes.size();
      arguments[i] = aligned(memory, std::max<size_t>(bytes, argument.bytes));
      memcpy(arguments[i], request.values[i].bytes.data(), bytes);
      continue;
    }
    if (argument.kind == LOCAL)
      pointers[i] = aligned(memory, request.values[i].local_bytes);
    else if (argument.kind == SAMPLER || request.values[i].shared)
      memcpy(&pointers[i], request.values[i].bytes.data(), sizeof pointers[i]);
    else if (request.buffer_index[i] >= 0)
      pointers[i] = (char*)buffer_addresses[request.buffer_index[i]] + request.origin[i];
    if (argument.kind == IMAGE) {
      request.images[i].data = pointers[i];
      pointers[i] = &request.images[i];
    }
    arguments[i] = &pointers[i];
  }
  std::vector<BufferRange> ranges = request.shared;
  for (size_t i = 0; i < request.buffers.size(); i++) {
    const Buffer& buffer = request.buffers[i];
    uint64_t begin = (uint64_t)buffer_addresses[i];
    ranges.push_back({begin, begin + buffer.bytes, buffer.base});
  }
  const Shape& s = request.shape;
  Lock streaming(capture.stream);
  std::vector<uint64_t> head = {capture.launches++, request.queue_number, request.shared_bytes, request.kernel->code_bytes};
  head.insert(head.end(), s.groups, s.groups + 3);
  head.insert(head.end(), s.local, s.local + 3);
  capture.wire.send(MessageType::KERNEL, head, request.name);
  LaunchRunner launch(*request.module, *request.kernel, s, arguments.data(), ranges);
  Denormals denormals(request.flushes_denormals);
  launch.run([&](Records& r) {
    if (r.blocks.empty()) return;
    uint64_t counts[4] = {r.blocks.size(), r.warps.size(), r.ops.size(), r.lines.size()};
    std::vector<char> body;
    auto add = [&body](const void* data, size_t bytes) {
      body.insert(body.end(), (const char*)data, (const char*)data + bytes);
    };
    add(r.blocks.data(), r.blocks.size() * sizeof r.blocks[0]);
    add(r.warps.data(), r.warps.size() * sizeof r.warps[0]);
    add(r.ops.data(), r.ops.size() * sizeof r.ops[0]);
    add(r.lines.data(), r.lines.size() * sizeof r.lines[0]);
    capture.wire.send(MessageType::RECORDS, counts, sizeof counts, body.data(), body.size());
    r.clear();
  });
  if (!launch.printed.empty()) fwrite(launch.printed.data(), 1, launch.printed.size(), stdout), fflush(stdout);
  capture.wire.send(MessageType::KERNEL_END, {launch.lane_accesses, launch.outside});
}

void run_native(void* data) {
  Native& block = *(Native*)data;
  std::unique_ptr<Request> request(block.request);
  try {
    run(*request, block.buffers);
  } catch (const std::exception& error) {
    fprintf(stderr, "buddysim: error: kernel %s: %s\n", request->name.c_str(), error.what());
    abort();  // the kernel has changed part of the memory: later results would be wrong
  }
}

// PoCL fills in the addresses of a native kernel's buffers in the order of their creation, whatever the order in which
// they are listed, and each once.
void sort_by_creation(Request& request, std::vector<cl_mem>& memories) {
  std::vector<size_t> order(memories.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return request.buffers[a].created < request.buffers[b].created;
  });
  std::vector<cl_mem> listed;
  std::vector<Buffer> buffers;
  std::vector<int> now(memories.size());
  for (size_t at : order) {
    if (listed.empty() || listed.back() != memories[at]) {
      listed.push_back(memories[at]);
      buffers.push_back(request.buffers[at]);
    }
    now[at] = listed.size() - 1;
  }
  for (int& index : request.buffer_index)
    if (index >= 0) index = now[index];
  memories = std::move(listed);
  request.buffers = std::move(buffers);
}

// The work-group that the program leaves to OpenCL: up to 256 work-items, as many in x as divide the global size.
void choose_local(const uint64_t* global, uint32_t dimensions, uint64_t* local) {
  uint64_t remaining = 256;  // work-items
  for (uint32_t d = 0; d < 3; d++) {
    local[d] = d < dimensions ? std::min(global[d], d == 0 && dimensions > 1 ? 64 : remaining) : 1;
    while (global[d] % local[d]) local[d]--;
    remaining = std::max<uint64_t>(remaining / local[d], 1);
  }
}

// Computes the launch's shape; returns whether PoCL accepts it.
bool shape_of(cl_kernel kernel, cl_command_queue queue, cl_uint dimensions, const size_t* offset, const size_t* global,
              const size_t* local, Shape& shape) {
  Capture& capture = Capture::get();
  if (dimensions < 1 || dimensions > 3 || !global) return false;
  cl_device_id device;
  if (capture.real.clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof device, &device, nullptr)) return false;
  size_t required[3] = {0, 0, 0}, max_work_items = 0;
  capture.real.clGetKernelWorkGroupInfo(kernel, device, CL_KERNEL_COMPILE_WORK_GROUP_SIZE, sizeof required, required,
                                        nullptr);
  capture.real.clGetDeviceInfo(device, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof max_work_items, &max_work_items, nullptr);
  uint64_t total[3];
  shape.dimensions = dimensions;
  for (cl_uint d = 0; d < 3; d++) {
    total[d] = d < dimensions ? global[d] : 1;
    shape.offset[d] = d < dimensions && offset ? offset[d] : 0;
    if (!total[d]) return false;
  }
  if (local)
    for (cl_uint d = 0; d < 3; d++) shape.local[d] = d < dimensions ? local[d] : 1;
  else if (required[0])
    for (cl_uint d = 0; d < 3; d++) shape.local[d] = required[d];
  else
    choose_local(total, dimensions, shape.local);
  uint64_t blocks = 1;
  for (cl_uint d = 0; d < 3; d++) {
    if (!shape.local[d] || total[d] % shape.local[d]) return false;
    if (required[0] && shape.local[d] != required[d]) return false;
    shape.groups[d] = total[d] / shape.local[d];
    blocks *= shape.groups[d];
  }
  return shape.work_items() <= max_work_items && blocks < uint64_t(1) << 32;
}

// The request of a launch and the buffers that it accesses; null where the kernel runs untraced.
std::unique_ptr<Request> make_request(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                                      const size_t* offset, const size_t* global, const size_t* local,
                                      std::vector<cl_mem>& memories) {
  Capture& capture = Capture::get();
  auto request = std::make_unique<Request>();
  Lock lock(capture.state);
  KernelObject* object = capture.kernel_object(kernel);
  if (!object) return nullptr;
  capture.look_up(*object);
  if (!object->kernel) {
    Lock streaming(capture.stream);
    capture.wire.send(MessageType::UNTRACED, {capture.launches}, object->name + ": " + object->refused);
  }
  if (!object->kernel || !shape_of(kernel, queue, dimensions, offset, global, local, request->shape)) return nullptr;
  request->module = object->module;
  request->kernel = object->kernel;
  request->name = object->name;
  request->values = object->values;
  request->origin.resize(object->values.size());
  request->images.resize(object->values.size());
  for (auto& [address, buffer] : capture.buffers)
    if (buffer.shared) request->shared.push_back({(uint64_t)address, (uint64_t)address + buffer.bytes, buffer.base});
  request->queue_number = 0;
  request->flushes_denormals = object->flushes_denormals;
  request->shared_bytes = object->kernel->shared_bytes;
  for (size_t i = 0; i < request->values.size(); i++) {
    const Value& value = request->values[i];
    if (!value.set) return nullptr;  // PoCL reports the error
    request->buffer_index.push_back(-1);
    request->shared_bytes += value.local_bytes;
    uint32_t kind = object->kernel->arguments[i].kind;
    if ((kind == VALUE || kind == LOCAL) || value.shared || value.bytes.size() != sizeof(cl_mem)) continue;
    if (kind == SAMPLER) {
      cl_sampler sampler;
      memcpy(&sampler, value.bytes.data(), sizeof sampler);
      uint64_t bits = sampler_bits(sampler);
      memcpy(request->values[i].bytes.data(), &bits, sizeof bits);
      continue;
    }
    cl_mem memory;
    memcpy(&memory, value.bytes.data(), sizeof memory);
    if (kind == IMAGE) request->images[i] = described_image(memory);
    auto entry = capture.buffers.find(memory);
    if (!memory || entry == capture.buffers.end()) continue;
    request->buffer_index.back() = memories.size();
    request->origin[i] = entry->second.origin;
    if (entry->second.parent) {  // PoCL's native kernels don't know where a part of a buffer begins
      memory = entry->second.parent;
      entry = capture.buffers.find(memory);
    }
    memories.push_back(memory);
    request->buffers.push_back(entry->second);
  }
  return request;
}

// Waits for a launch unless the program holds it back, and gives the program its event.
void wait_and_give(cl_event done, cl_event* event) {
  Capture& capture = Capture::get();
  bool wait;
  {
    Lock lock(capture.state);
    wait = capture.user_events.empty();
    if (!wait) {
      capture.real.clRetainEvent(done);
      capture.held_back.push_back(done);
    }
  }
  if (wait) capture.real.clWaitForEvents(1, &done);  // in program order, so that each run gives the same trace
  if (event)
    *event = done;
  else
    capture.real.clReleaseEvent(done);
}

// The launch runs in PoCL, with the work-groups that the capture would choose.
cl_int run_in_pocl(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const size_t* offset,
                   const size_t* global, const size_t* local, cl_uint n_waits, const cl_event* waits,
                   cl_event* event) {
  Capture& capture = Capture::get();
  Shape shape;
  size_t local_size[3];
  if (!local && shape_of(kernel, queue, dimensions, offset, global, local, shape))
    std::copy(shape.local, shape.local + 3, local_size), local = local_size;
  cl_event done;
  cl_int error = capture.real.clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global, local, n_waits, waits,
                                                     &done);
  if (error) return error;
  {
    Lock lock(capture.state), streaming(capture.stream);
    capture.enqueued++;
    std::vector<uint64_t> head = {capture.launches++};
    for (cl_uint d = 0; d < 3; d++) head.push_back(d < dimensions ? global[d] : 1);
    for (cl_uint d = 0; d < 3; d++) head.push_back(!local ? 0 : d < dimensions ? local[d] : 1);
    KernelObject* object = capture.kernel_object(kernel);
    capture.wire.send(MessageType::NATIVE, head, object ? object->name : "");
  }
  wait_and_give(done, event);
  return CL_SUCCESS;
}

}  // namespace

cl_int enqueue_launch(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const size_t* offset,
                      const size_t* global, const size_t* local, cl_uint n_waits, const cl_event* waits,
                      cl_event* event) {
  Capture& capture = Capture::get();
  if (!capture.wire.open())
    return capture.real.clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global, local, n_waits, waits, event);
  auto untraced = [&] {
    return run_in_pocl(queue, kernel, dimensions, offset, global, local, n_waits, waits, event);
  };
  capture.see_queue(queue);
  capture.snapshot_before_launch();
  bool traced;
  {
    Lock lock(capture.state);
    traced = capture.window.traces(capture.enqueued);
  }
  if (!traced) return untraced();
  std::vector<cl_mem> memories;
  std::unique_ptr<Request> request = make_request(queue, kernel, dimensions, offset, global, local, memories);
  if (!request) return untraced();
  sort_by_creation(*request, memories);
  std::vector<char> bytes(sizeof(Native) + memories.size() * sizeof(void*));
  Native& block = *(Native*)bytes.data();
  std::vector<const void*> replaced;
  for (size_t i = 0; i < memories.size(); i++) {
    block.buffers[i] = memories[i];
    replaced.push_back(&block.buffers[i]);
  }
  block.request = request.get();
  cl_event done;
  size_t n = memories.size();
  cl_int error = capture.real.clEnqueueNativeKernel(queue, run_native, bytes.data(), bytes.size(), n,
                                                    n ? memories.data() : nullptr, n ? replaced.data() : nullptr,
                                                    n_waits, waits, &done);
  if (error) {
    fprintf(stderr, "buddysim: warning: kernel %s: PoCL refuses a native kernel (OpenCL error %d): untraced\n",
            request->name.c_str(), error);
    return untraced();
  }
  request.release();
  {
    Lock lock(capture.state);
    capture.enqueued++;
  }
  wait_and_give(done, event);
  return CL_SUCCESS;
}

}  // namespace capture
