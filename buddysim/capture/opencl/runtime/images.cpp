// Images: PoCL stores them in buffers, which its built-in functions find by a description.
#include <algorithm>
#include <cstring>

#include "capture.h"

namespace capture {
namespace {

using Lock = std::lock_guard<std::recursive_mutex>;

Capture& c() { return Capture::get(); }

template <class T>
T image_info(cl_mem image, cl_image_info what) {
  T value{};
  c().real.clGetImageInfo(image, what, sizeof value, &value, nullptr);
  return value;
}

uint64_t bytes_of(cl_mem memory) {
  size_t bytes = 0;
  c().real.clGetMemObjectInfo(memory, CL_MEM_SIZE, sizeof bytes, &bytes, nullptr);
  return bytes;
}

int channels_of(cl_channel_order order) {
  switch (order) {
    case CL_R:
    case CL_A:
    case CL_INTENSITY:
    case CL_LUMINANCE:
    case CL_Rx:
    case CL_DEPTH:
      return 1;
    case CL_RG:
    case CL_RA:
    case CL_RGx:
      return 2;
    case CL_RGB:
    case CL_RGBx:
      return 3;
    default:
      return 4;
  }
}

cl_mem added(cl_mem image, cl_context context, cl_mem_flags flags, cl_mem parent = nullptr) {
  if (!image) return image;
  Lock lock(c().state);
  if (parent && c().buffers.count(parent))
    c().add_sub_buffer(image, parent, 0, bytes_of(image));
  else
    c().add_buffer(image, context, bytes_of(image), flags & (CL_MEM_COPY_HOST_PTR | CL_MEM_USE_HOST_PTR));
  return image;
}

// The rows of a part of an image, as (first byte in the image, bytes); adjoining rows are one.
template <class Each>
void each_row(cl_mem image, const size_t* origin, const size_t* region, Each each) {
  ImageDescription d = described_image(image);
  size_t pixel = size_t(d.bytes) * d.channels;
  cl_mem_object_type type = 0;
  c().real.clGetMemObjectInfo(image, CL_MEM_TYPE, sizeof type, &type, nullptr);
  size_t rows = d.row_pitch, slices = type == CL_MEM_OBJECT_IMAGE1D_ARRAY ? 0 : d.slice_pitch;
  if (type == CL_MEM_OBJECT_IMAGE1D_ARRAY) rows = d.slice_pitch ? d.slice_pitch : d.row_pitch;
  size_t first = origin[0] * pixel + origin[1] * rows + origin[2] * slices, bytes = region[0] * pixel;
  if (bytes == rows && (region[2] == 1 || region[1] * rows == slices)) return each(first, bytes * region[1] * region[2]);
  for (size_t z = 0; z < region[2]; z++)
    for (size_t y = 0; y < region[1]; y++) each(first + z * slices + y * rows, bytes);
}

cl_mem CL_API_CALL create_image(cl_context context, cl_mem_flags flags, const cl_image_format* format,
                                const cl_image_desc* shape, void* initial, cl_int* error) {
  cl_mem image = c().real.clCreateImage(context, flags, format, shape, initial, error);
  return added(image, context, flags, shape ? shape->mem_object : nullptr);
}

cl_mem CL_API_CALL create_image_with_properties(cl_context context, const cl_mem_properties* properties,
                                                cl_mem_flags flags, const cl_image_format* format,
                                                const cl_image_desc* shape, void* initial, cl_int* error) {
  cl_mem image = c().real.clCreateImageWithProperties(context, properties, flags, format, shape, initial, error);
  return added(image, context, flags, shape ? shape->mem_object : nullptr);
}

cl_mem CL_API_CALL create_image_2d(cl_context context, cl_mem_flags flags, const cl_image_format* format, size_t width,
                                   size_t height, size_t row, void* initial, cl_int* error) {
  return added(c().real.clCreateImage2D(context, flags, format, width, height, row, initial, error), context, flags);
}

cl_mem CL_API_CALL create_image_3d(cl_context context, cl_mem_flags flags, const cl_image_format* format, size_t width,
                                   size_t height, size_t depth, size_t row, size_t slice, void* initial,
                                   cl_int* error) {
  cl_mem image = c().real.clCreateImage3D(context, flags, format, width, height, depth, row, slice, initial, error);
  return added(image, context, flags);
}

cl_int CL_API_CALL read_image(cl_command_queue queue, cl_mem image, cl_bool blocking, const size_t* origin,
                              const size_t* region, size_t row, size_t slice, void* to, cl_uint n,
                              const cl_event* waits, cl_event* event) {
  c().see_queue(queue);
  cl_int error =
      c().real.clEnqueueReadImage(queue, image, blocking, origin, region, row, slice, to, n, waits, event);
  if (!error) each_row(image, origin, region, [&](size_t at, size_t bytes) { c().copy(1, image, at, bytes); });
  return error;
}

cl_int CL_API_CALL write_image(cl_command_queue queue, cl_mem image, cl_bool blocking, const size_t* origin,
                               const size_t* region, size_t row, size_t slice, const void* from, cl_uint n,
                               const cl_event* waits, cl_event* event) {
  c().see_queue(queue);
  cl_int error =
      c().real.clEnqueueWriteImage(queue, image, blocking, origin, region, row, slice, from, n, waits, event);
  if (!error) each_row(image, origin, region, [&](size_t at, size_t bytes) { c().copy(0, image, at, bytes); });
  return error;
}

cl_int CL_API_CALL copy_image(cl_command_queue queue, cl_mem from, cl_mem to, const size_t* from_origin,
                              const size_t* to_origin, const size_t* region, cl_uint n, const cl_event* waits,
                              cl_event* event) {
  cl_int error = c().real.clEnqueueCopyImage(queue, from, to, from_origin, to_origin, region, n, waits, event);
  if (error) return error;
  size_t whole[3] = {region[0], 1, 1};  // row by row, as the two may have other pitches
  for (size_t z = 0; z < region[2]; z++)
    for (size_t y = 0; y < region[1]; y++) {
      size_t source[3] = {from_origin[0], from_origin[1] + y, from_origin[2] + z}, at_source = 0;
      size_t target[3] = {to_origin[0], to_origin[1] + y, to_origin[2] + z};
      each_row(from, source, whole, [&](size_t at, size_t) { at_source = at; });
      each_row(to, target, whole, [&](size_t at, size_t bytes) { c().copy(2, to, at, bytes, from, at_source); });
    }
  return error;
}

cl_int CL_API_CALL copy_image_to_buffer(cl_command_queue queue, cl_mem from, cl_mem to, const size_t* origin,
                                        const size_t* region, size_t offset, cl_uint n, const cl_event* waits,
                                        cl_event* event) {
  cl_int error = c().real.clEnqueueCopyImageToBuffer(queue, from, to, origin, region, offset, n, waits, event);
  if (!error)
    each_row(from, origin, region, [&](size_t at, size_t bytes) {
      c().copy(2, to, offset, bytes, from, at);
      offset += bytes;
    });
  return error;
}

cl_int CL_API_CALL copy_buffer_to_image(cl_command_queue queue, cl_mem from, cl_mem to, size_t offset,
                                        const size_t* origin, const size_t* region, cl_uint n, const cl_event* waits,
                                        cl_event* event) {
  cl_int error = c().real.clEnqueueCopyBufferToImage(queue, from, to, offset, origin, region, n, waits, event);
  if (!error)
    each_row(to, origin, region, [&](size_t at, size_t bytes) {
      c().copy(2, to, at, bytes, from, offset);
      offset += bytes;
    });
  return error;
}

cl_int CL_API_CALL fill_image(cl_command_queue queue, cl_mem image, const void* colour, const size_t* origin,
                              const size_t* region, cl_uint n, const cl_event* waits, cl_event* event) {
  cl_int error = c().real.clEnqueueFillImage(queue, image, colour, origin, region, n, waits, event);
  const char* parts = (const char*)colour;
  bool zero = std::all_of(parts, parts + 16, [](char part) { return !part; });
  const unsigned char unlike[2] = {0, 1};  // of another colour the bytes depend on the format: they aren't all the same
  if (!error)
    each_row(image, origin, region, [&](size_t at, size_t bytes) { c().fill(image, at, bytes, unlike, zero ? 1 : 2); });
  return error;
}

void* CL_API_CALL map_image(cl_command_queue queue, cl_mem image, cl_bool blocking, cl_map_flags flags,
                            const size_t* origin, const size_t* region, size_t* row, size_t* slice, cl_uint n,
                            const cl_event* waits, cl_event* event, cl_int* error) {
  c().see_queue(queue);
  void* address = c().real.clEnqueueMapImage(queue, image, blocking, flags, origin, region, row, slice, n, waits,
                                             event, error);
  if (!address) return address;
  uint64_t first = ~0ull, end = 0;  // from its first byte to its last
  each_row(image, origin, region, [&](size_t at, size_t bytes) {
    first = std::min<uint64_t>(first, at);
    end = std::max<uint64_t>(end, at + bytes);
  });
  if (flags & CL_MAP_READ) c().copy(1, image, first, end - first);
  Lock lock(c().state);
  c().mappings.insert({address, {image, first, end - first, flags}});
  return address;
}

}  // namespace

ImageDescription described_image(cl_mem image) {
  ImageDescription d{};
  auto format = image_info<cl_image_format>(image, CL_IMAGE_FORMAT);
  d.width = image_info<size_t>(image, CL_IMAGE_WIDTH);
  d.height = image_info<size_t>(image, CL_IMAGE_HEIGHT);
  d.depth = image_info<size_t>(image, CL_IMAGE_DEPTH);
  d.array_size = image_info<size_t>(image, CL_IMAGE_ARRAY_SIZE);
  d.row_pitch = image_info<size_t>(image, CL_IMAGE_ROW_PITCH);
  d.slice_pitch = image_info<size_t>(image, CL_IMAGE_SLICE_PITCH);
  d.order = format.image_channel_order;
  d.type = format.image_channel_data_type;
  d.channels = channels_of(format.image_channel_order);
  size_t pixel = image_info<size_t>(image, CL_IMAGE_ELEMENT_SIZE);
  if (pixel % d.channels || !pixel) d.channels = 1;  // packed
  d.bytes = pixel / d.channels;
  return d;
}

// Encoding of samplers by clang (CLK_... of opencl-c-base.h).
uint64_t sampler_bits(cl_sampler sampler) {
  cl_bool normalized = 0;
  cl_addressing_mode addressing = 0;
  cl_filter_mode filter = 0;
  c().real.clGetSamplerInfo(sampler, CL_SAMPLER_NORMALIZED_COORDS, sizeof normalized, &normalized, nullptr);
  c().real.clGetSamplerInfo(sampler, CL_SAMPLER_ADDRESSING_MODE, sizeof addressing, &addressing, nullptr);
  c().real.clGetSamplerInfo(sampler, CL_SAMPLER_FILTER_MODE, sizeof filter, &filter, nullptr);
  return (normalized ? 1 : 0) | 2 * (addressing - CL_ADDRESS_NONE) | (filter == CL_FILTER_LINEAR ? 0x20 : 0x10);
}

void install_images(cl_icd_dispatch& table) {
  table.clCreateImage2D = create_image_2d;
  table.clCreateImage3D = create_image_3d;
  table.clCreateImage = create_image;
  if (table.clCreateImageWithProperties) table.clCreateImageWithProperties = create_image_with_properties;
  table.clEnqueueReadImage = read_image;
  table.clEnqueueWriteImage = write_image;
  table.clEnqueueCopyImage = copy_image;
  table.clEnqueueCopyImageToBuffer = copy_image_to_buffer;
  table.clEnqueueCopyBufferToImage = copy_buffer_to_image;
  table.clEnqueueFillImage = fill_image;
  table.clEnqueueMapImage = map_image;
}

}  // namespace capture
