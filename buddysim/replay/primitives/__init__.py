"""What parts of the replayed machine are made of: caches, ports, reservations, events, memory. No part is imported."""
