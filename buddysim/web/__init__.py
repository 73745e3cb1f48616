"""The page that answers in a browser whether a model fits and what it costs: this package runs there, in Pyodide.

`question` turns the form into a command line, `answer` runs it piece by piece, `page/` is what the browser loads.
"""
