"""What a user can ask of each command, and what it answers; and the checks of that."""
