"""The memory system below the L1s as one block, its allocations and its address map."""
