"""Orders of a feature map's axes in memory."""

#: The last axis is contiguous: samples, channels, height, width.
LAYOUTS = ("NCHW", "NHWC", "CHWN")
