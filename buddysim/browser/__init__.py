"""What the page runs in the browser: the form as a command line, its answer part by part.

Nothing here may need arrays or compiled modules: the browser has neither (tools/make_web.py copies what it needs).
"""
