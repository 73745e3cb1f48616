"""Files of sections: a header, then sections, each with its type, its length and checksums of both and of its payload.

Trace files and files of feature maps are of this form. Nothing here knows what a section means.
"""
