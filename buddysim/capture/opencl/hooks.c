/* Linked to every compiled program: the work-item's ids and sizes, and the functions that its kernels call. */
#include <stdint.h>

uint64_t _local_id_x, _local_id_y, _local_id_z, _group_id_x, _group_id_y, _group_id_z;
uint64_t _local_size_x, _local_size_y, _local_size_z, _num_groups_x, _num_groups_y, _num_groups_z;
uint64_t _global_offset_x, _global_offset_y, _global_offset_z;
uint32_t _work_dim;
char *_printf_buffer;
uint32_t _printf_buffer_capacity, *_printf_buffer_position;

/* The log of the work-item that runs; the runtime changes it with the work-item. */
struct {
  uint32_t *block, *blocks_end;
  uint64_t *access, *accesses_end;
} bs_log;
void (*bs_log_full)(void);
void (*bs_wait)(void);

void bs_block(uint32_t number) {
  if (bs_log.block == bs_log.blocks_end) bs_log_full();
  *bs_log.block++ = number;
}

void bs_access(void *address) {
  if (bs_log.access == bs_log.accesses_end) bs_log_full();
  *bs_log.access++ = (uint64_t)address;
}

void bs_barrier(void) { bs_wait(); }
