"""What a user may choose, as plain data: nothing here acts on a step."""
