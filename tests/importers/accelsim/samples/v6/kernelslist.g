MemcpyHtoD,0x00007f0000000000,256,kernel-copy.bin
kernel-1-ctx_0x55.traceg
