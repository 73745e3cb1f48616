// OpenCL objects of the program, and the state of the messages to the writer of the trace.
#pragma once
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_0_APIS
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#define CL_USE_DEPRECATED_OPENCL_2_0_APIS
#define CL_USE_DEPRECATED_OPENCL_2_1_APIS
#define CL_USE_DEPRECATED_OPENCL_2_2_APIS
#include <CL/cl.h>
#include <CL/cl_icd.h>

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "addresses.h"
#include "launch.h"
#include "module.h"
#include "window.h"
#include "wire.h"

namespace capture {

struct Buffer {
  uint64_t number, base, bytes;
  cl_context context;
  unsigned references = 1;     // of the program and of its sub-buffers
  cl_mem parent = nullptr;     // of a sub-buffer; number and base are its parent's
  uint64_t origin = 0;
  uint64_t created = 0;        // buffers and sub-buffers made before it
  bool named = false;
  bool shared = false;         // virtual memory at its own address, without an object of PoCL
  uint64_t last_seen = ~0ull;  // number of launches when its possibly last contents were sent
};

struct Value {  // of a kernel's argument
  bool set = false;
  std::vector<unsigned char> bytes;
  size_t local_bytes = 0;      // of a __local one
  bool shared = false;         // a pointer to shared virtual memory
};

struct KernelObject {
  std::string name;
  cl_program program;
  std::shared_ptr<Module> module;
  const Kernel* kernel = nullptr;  // null: untraced
  std::vector<Value> values;
  bool looked_up = false;
  std::string refused;         // reason for an untraced run
  bool flushes_denormals = false;
};

struct Mapping {
  cl_mem memory;
  uint64_t offset, bytes;
  cl_map_flags flags;
};

class Capture {
 public:
  static Capture& get();
  cl_icd_dispatch real;        // PoCL's own functions

  std::recursive_mutex state;  // never held while commands are waited for
  std::recursive_mutex stream; // a kernel's messages follow each other
  Wire wire;
  std::map<cl_mem, Buffer> buffers;
  std::map<cl_kernel, KernelObject> kernels;
  std::map<cl_program, std::shared_ptr<Module>> modules;
  std::set<cl_program> flushing;  // built to take numbers below the normal ones as zero
  std::multimap<void*, Mapping> mappings;
  std::set<cl_event> user_events;  // that have not been set
  std::vector<cl_event> held_back;  // launches without a wait, because of user events
  std::map<cl_context, cl_command_queue> queues;  // one that contents can be read by
  uint64_t launches = 0;       // that have run, or PoCL has been is_set
  uint64_t enqueued = 0;       // launches of the program, including held-back ones
  LaunchWindow window;

  void add_buffer(cl_mem memory, cl_context context, uint64_t bytes, bool has_contents);
  void add_sub_buffer(cl_mem memory, cl_mem parent, uint64_t origin, uint64_t bytes);
  void retain(cl_mem memory);
  void release(cl_mem memory);  // before PoCL releases it
  void add_shared(void* address, cl_context context, uint64_t bytes);
  void end_mapping(cl_mem memory, void* address);
  cl_mem shared_at(const void* address);  // the shared virtual memory that an address lies in
  void copy(int kind, cl_mem memory, uint64_t offset, uint64_t bytes, cl_mem source = nullptr, uint64_t from = 0);
  void fill(cl_mem memory, uint64_t offset, uint64_t bytes, const void* pattern, size_t pattern_bytes);
  void note(const std::string& text);  // once each
  KernelObject* kernel_object(cl_kernel kernel);
  void look_up(KernelObject& object);
  void name_buffer(KernelObject& object, cl_uint index, cl_mem memory);
  void see_queue(cl_command_queue queue);
  void snapshot_before_launch();
  void at_exit();

 private:
  Capture();
  bool is_periodic_snapshot_due();
  bool all_launches_done();
  std::vector<cl_mem> all_buffers();
  void last_contents(const std::vector<cl_mem>& memories);
  void send_contents(const std::vector<cl_mem>& memories, uint64_t reasons);
  void send_from_queue(cl_command_queue queue, const std::vector<cl_mem>& memories);
  Addresses addresses_;
  uint64_t next_number_ = 0, stride_ = 1, n_snapshots_ = 0, max_snapshots_ = 20;
  uint64_t created_ = 0;
  uint64_t next_periodic_ = 0;
  std::set<uint64_t> planned_snapshots_;  // launch indices of periodic snapshots, with --total-launches
  std::set<std::string> noted_;
};

cl_int enqueue_launch(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const size_t* offset,
                      const size_t* global, const size_t* local, cl_uint n_waits, const cl_event* waits,
                      cl_event* event);

// An image as PoCL's built-in functions know it: dev_image_t of pocl_image_types.h.
struct ImageDescription {
  void* data;
  int32_t width, height, depth, array_size, row_pitch, slice_pitch, mip_levels, samples, order, type, channels, bytes;
};

ImageDescription described_image(cl_mem image);  // without its data
uint64_t sampler_bits(cl_sampler sampler);
void install_images(cl_icd_dispatch& table);
void install_shared(cl_icd_dispatch& table);

// Puts the hooks into PoCL's table of functions, which every OpenCL loader calls it through.
void install_hooks(cl_icd_dispatch& table);

}  // namespace capture
