#include "capture.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

namespace capture {

using Lock = std::lock_guard<std::recursive_mutex>;

Capture& Capture::get() {
  static Capture* one = new Capture;  // outlives every thread and destructor
  return *one;
}

Capture::Capture() {
  const char* path = getenv("BUDDYSIM_CAPTURE_SOCKET");
  if (path && wire.connect(path)) wire.send(MessageType::HELLO, {2, uint64_t(getpid())});
  if (const char* text = getenv("BUDDYSIM_CAPTURE_CANDIDATES")) max_snapshots_ = strtoull(text, nullptr, 10);
  if (const char* text = getenv("BUDDYSIM_CAPTURE_POINTS"))
    for (char* at = (char*)text; *at; at += *at == ',') planned_snapshots_.insert(strtoull(at, &at, 10));
  if (const char* text = getenv("BUDDYSIM_CAPTURE_WINDOW")) {
    char* colon;
    window.is_set = true;
    window.first = strtoull(text, &colon, 10);
    if (colon[1]) window.end = strtoull(colon + 1, nullptr, 10);
  }
}

void Capture::add_buffer(cl_mem memory, cl_context context, uint64_t bytes, bool has_contents) {
  Lock lock(state), streaming(stream);
  Buffer buffer{next_number_++, addresses_.allocate(bytes), bytes, context};
  buffer.created = created_++;
  buffers[memory] = buffer;
  wire.send(MessageType::ALLOCATE, {buffer.number, buffer.base, bytes});
  if (has_contents) copy(0, memory, 0, bytes);
}

void Capture::add_sub_buffer(cl_mem memory, cl_mem parent, uint64_t origin, uint64_t bytes) {
  Lock lock(state);
  auto entry = buffers.find(parent);
  if (entry == buffers.end()) return;
  Buffer buffer = entry->second;
  entry->second.references++;
  buffer.parent = parent;
  buffer.origin = origin;
  buffer.bytes = bytes;
  buffer.references = 1;
  buffer.created = created_++;
  buffers[memory] = buffer;
}

void Capture::retain(cl_mem memory) {
  Lock lock(state);
  auto entry = buffers.find(memory);
  if (entry != buffers.end()) entry->second.references++;
}

void Capture::release(cl_mem memory) {
  Lock lock(state);
  auto entry = buffers.find(memory);
  if (entry == buffers.end()) return;
  if (entry->second.references > 1) {
    entry->second.references--;
    return;
  }
  cl_mem parent = entry->second.parent;
  if (!parent) {
    last_contents({memory});
    Lock streaming(stream);
    wire.send(MessageType::FREE, {entry->second.number});
    addresses_.release(entry->second.base);
  }
  buffers.erase(entry);
  if (parent) release(parent);
}

void Capture::add_shared(void* address, cl_context context, uint64_t bytes) {
  Lock lock(state);
  add_buffer((cl_mem)address, context, bytes, false);
  buffers[(cl_mem)address].shared = true;
}

void Capture::end_mapping(cl_mem memory, void* address) {
  Lock lock(state);
  auto [first, end] = mappings.equal_range(address);
  for (auto at = first; at != end; ++at)
    if (at->second.memory == memory) {
      Mapping m = at->second;
      mappings.erase(at);
      if (m.flags & (CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION)) copy(0, memory, m.offset, m.bytes);
      return;
    }
}

cl_mem Capture::shared_at(const void* address) {
  Lock lock(state);
  auto after = buffers.upper_bound((cl_mem)address);
  while (after != buffers.begin()) {  // PoCL's own objects may lie in between
    --after;
    if (!after->second.shared) continue;
    return (const char*)address < (const char*)after->first + after->second.bytes ? after->first : nullptr;
  }
  return nullptr;
}

void Capture::copy(int kind, cl_mem memory, uint64_t offset, uint64_t bytes, cl_mem source, uint64_t from) {
  Lock lock(state), streaming(stream);
  auto entry = buffers.find(memory);
  if (entry == buffers.end() || !bytes || !window.touches(launches)) return;
  const Buffer& buffer = entry->second;
  uint64_t source_address = 0;
  if (source) {
    auto other = buffers.find(source);
    if (other == buffers.end()) return;
    source_address = other->second.base + other->second.origin + from;
  }
  wire.send(MessageType::COPY, {uint64_t(kind), buffer.base + buffer.origin + offset, bytes, source_address});
}

void Capture::fill(cl_mem memory, uint64_t offset, uint64_t bytes, const void* pattern, size_t pattern_bytes) {
  Lock lock(state), streaming(stream);
  auto entry = buffers.find(memory);
  if (entry == buffers.end() || !bytes || !pattern_bytes || !window.touches(launches)) return;
  const unsigned char* p = (const unsigned char*)pattern;
  bool same = std::all_of(p, p + pattern_bytes, [p](unsigned char byte) { return byte == *p; });
  wire.send(MessageType::FILL, {entry->second.base + entry->second.origin + offset, bytes, same ? *p : 256ull});
}

void Capture::note(const std::string& text) {
  Lock lock(state), streaming(stream);
  if (noted_.insert(text).second) wire.send(MessageType::NOTE, {launches}, text);
}

KernelObject* Capture::kernel_object(cl_kernel kernel) {
  Lock lock(state);
  auto entry = kernels.find(kernel);
  if (entry != kernels.end()) return &entry->second;
  KernelObject object;
  size_t bytes = 0;
  cl_uint n = 0;
  if (real.clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, 0, nullptr, &bytes)) return nullptr;
  object.name.resize(bytes);
  real.clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, bytes, object.name.data(), nullptr);
  object.name.resize(strlen(object.name.c_str()));
  real.clGetKernelInfo(kernel, CL_KERNEL_PROGRAM, sizeof object.program, &object.program, nullptr);
  real.clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof n, &n, nullptr);
  object.values.resize(n);
  return &(kernels[kernel] = object);
}

// Compiles the kernel's program for the capture at first use.
void Capture::look_up(KernelObject& object) {
  if (object.looked_up) return;
  object.looked_up = true;
  std::string why;
  try {
    std::shared_ptr<Module>& module = modules[object.program];
    if (!module) {
      cl_uint n = 0;
      real.clGetProgramInfo(object.program, CL_PROGRAM_NUM_DEVICES, sizeof n, &n, nullptr);
      std::vector<size_t> sizes(n);
      real.clGetProgramInfo(object.program, CL_PROGRAM_BINARY_SIZES, n * sizeof(size_t), sizes.data(), nullptr);
      std::vector<std::vector<unsigned char>> binaries(n);
      std::vector<unsigned char*> pointers(n);
      for (cl_uint i = 0; i < n; i++) binaries[i].resize(sizes[i]), pointers[i] = binaries[i].data();
      real.clGetProgramInfo(object.program, CL_PROGRAM_BINARIES, n * sizeof(void*), pointers.data(), nullptr);
      auto binary = std::find_if(binaries.begin(), binaries.end(), [](auto& b) { return !b.empty(); });
      if (binary == binaries.end()) throw std::runtime_error("PoCL gives no code for its program");
      Lock streaming(stream);
      module = std::make_shared<Module>(wire.compile(*binary));
    }
    object.module = module;
    object.flushes_denormals = flushing.count(object.program);
    const Kernel* kernel = module->kernel(object.name);
    if (!kernel)
      why = "it is not in its program's code";
    else if (!kernel->refused.empty())
      why = kernel->refused;
    else
      object.kernel = kernel;
  } catch (const std::exception& error) {
    why = error.what();
  }
  object.refused = why;
}

void Capture::name_buffer(KernelObject& object, cl_uint index, cl_mem memory) {
  Lock lock(state);
  look_up(object);
  if (!object.kernel || index >= object.kernel->arguments.size()) return;
  auto entry = buffers.find(memory);
  if (entry == buffers.end()) return;
  if (entry->second.parent) entry = buffers.find(entry->second.parent);
  if (entry == buffers.end() || entry->second.named) return;
  const std::string& name = object.kernel->arguments[index].name;
  if (name.empty()) return;
  entry->second.named = true;
  Lock streaming(stream);
  wire.send(MessageType::NAME, {entry->second.number}, object.name + "." + name);
}

void Capture::see_queue(cl_command_queue queue) {
  Lock lock(state);
  cl_context context;
  if (real.clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof context, &context, nullptr)) return;
  auto [at, fresh] = queues.emplace(context, queue);
  if (fresh) real.clRetainCommandQueue(queue);
}

// Whether a periodic snapshot is due before the next launch.
bool Capture::is_periodic_snapshot_due() {
  if (!planned_snapshots_.empty()) return planned_snapshots_.count(launches);
  if (!max_snapshots_ || launches < next_periodic_) return false;
  if (++n_snapshots_ > max_snapshots_) {  // the writer drops every second one
    n_snapshots_ = (n_snapshots_ + 1) / 2;
    stride_ *= 2;
  }
  next_periodic_ = (launches / stride_ + 1) * stride_;
  return true;
}

// Whether contents can be read: not while user events hold launches back. Waits for launches that were held back earlier.
bool Capture::all_launches_done() {
  std::vector<cl_event> before;
  {
    Lock lock(state);
    if (!user_events.empty()) return false;
    before.swap(held_back);
  }
  for (cl_event event : before) {
    real.clWaitForEvents(1, &event);
    real.clReleaseEvent(event);
  }
  return true;
}

std::vector<cl_mem> Capture::all_buffers() {
  std::vector<cl_mem> all;
  for (auto& [memory, buffer] : buffers)
    if (!buffer.parent) all.push_back(memory);
  return all;
}

void Capture::snapshot_before_launch() {
  std::vector<cl_mem> all;
  uint64_t reasons = 0;
  bool done = all_launches_done();
  {
    Lock lock(state);
    if (!done) {
      if (window.is_set && window.touches(enqueued))
        note("no sizes next to traced launches while the program holds launches back by user events");
      return;
    }
    if (is_periodic_snapshot_due()) reasons |= PERIODIC;
    if (window.is_set && window.touches(launches)) reasons |= AROUND_LAUNCH;
    if (!reasons) return;
    all = all_buffers();
  }
  send_contents(all, reasons);
}

void Capture::last_contents(const std::vector<cl_mem>& memories) {
  uint64_t reasons = 0;
  std::vector<cl_mem> fresh;
  if (!all_launches_done()) return;
  {
    Lock lock(state);
    if (!launches) return;
    bool may_be_last = planned_snapshots_.empty() ? max_snapshots_ > 0 : launches >= *planned_snapshots_.rbegin();
    if (may_be_last) reasons |= LAST;
    if (window.is_set && window.touches(launches)) reasons |= AROUND_LAUNCH;
    if (!reasons) return;
    for (cl_mem memory : memories) {
      Buffer& buffer = buffers[memory];
      if (buffer.last_seen == launches) continue;
      buffer.last_seen = launches;
      fresh.push_back(memory);
    }
  }
  if (!fresh.empty()) send_contents(fresh, reasons);
}

namespace {

constexpr uint64_t MESSAGE_BYTES = 4 << 20;

void send_bytes(Capture& capture, uint64_t number, const char* data, uint64_t bytes) {
  for (uint64_t offset = 0; offset < bytes; offset += MESSAGE_BYTES) {
    uint64_t head[2] = {number, offset};
    capture.wire.send(MessageType::CONTENTS, head, sizeof head, data + offset, std::min(MESSAGE_BYTES, bytes - offset));
  }
}

struct Contents {  // argument of a native kernel; PoCL replaces the buffers by their addresses
  uint64_t n;
  const Buffer* described;
  void* buffers[1];
};

void send_from_device(void* data) {
  Contents& contents = *(Contents*)data;
  Capture& capture = Capture::get();
  Lock streaming(capture.stream);
  for (uint64_t i = 0; i < contents.n; i++)
    send_bytes(capture, contents.described[i].number, (char*)contents.buffers[i], contents.described[i].bytes);
}

}  // namespace

void Capture::send_from_queue(cl_command_queue queue, const std::vector<cl_mem>& memories) {
  if (!wire.open() || real.clFinish(queue)) return;
  std::vector<std::pair<uint64_t, cl_mem>> ordered;
  {
    Lock lock(state), streaming(stream);
    for (cl_mem memory : memories) {
      const Buffer& buffer = buffers[memory];
      if (buffer.shared)
        send_bytes(*this, buffer.number, (const char*)memory, buffer.bytes);
      else
        ordered.push_back({buffer.number, memory});
    }
  }
  std::sort(ordered.begin(), ordered.end());
  constexpr size_t AT_ONCE = 64;
  for (size_t first = 0; first < ordered.size(); first += AT_ONCE) {
    size_t n = std::min(AT_ONCE, ordered.size() - first);
    std::vector<Buffer> described;
    std::vector<cl_mem> group;
    std::vector<const void*> replaced;
    std::vector<char> block(sizeof(Contents) + n * sizeof(void*));
    Contents& contents = *(Contents*)block.data();
    for (size_t i = 0; i < n; i++) {
      group.push_back(ordered[first + i].second);
      described.push_back(buffers[group[i]]);
      contents.buffers[i] = group[i];
      replaced.push_back(&contents.buffers[i]);
    }
    contents.n = n;
    contents.described = described.data();
    cl_event done;
    cl_int error = real.clEnqueueNativeKernel(queue, send_from_device, block.data(), block.size(), n,
                                              group.data(), replaced.data(), 0, nullptr, &done);
    if (error) return note("contents of buffers could not be read: OpenCL error " + std::to_string(error));
    real.clWaitForEvents(1, &done);
    real.clReleaseEvent(done);
  }
}

// Each context's buffers are read by a queue of that context.
void Capture::send_contents(const std::vector<cl_mem>& memories, uint64_t reasons) {
  std::map<cl_command_queue, std::vector<cl_mem>> by_queue;
  {
    Lock lock(state);
    for (cl_mem memory : memories) {
      auto queue = queues.find(buffers[memory].context);
      if (queue != queues.end()) by_queue[queue->second].push_back(memory);
    }
  }
  auto send = [this](MessageType type, const std::vector<uint64_t>& numbers) {
    Lock streaming(stream);
    wire.send(type, numbers);
  };
  send(MessageType::SNAPSHOT, {launches, reasons});
  for (auto& [queue, of_queue] : by_queue) send_from_queue(queue, of_queue);
  send(MessageType::SNAPSHOT_END, {});
}

void Capture::at_exit() {
  if (!wire.open()) return;
  std::vector<cl_mem> all;
  {
    Lock lock(state);
    all = all_buffers();
  }
  last_contents(all);
  Lock streaming(stream);
  wire.send(MessageType::DONE, {launches});
}

}  // namespace capture
