"""Laws that every run must obey, on random machines and traces (`make laws`)."""
