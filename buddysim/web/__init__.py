"""The page that answers in a browser: its files in `page/`, and a server of them for this computer alone."""
