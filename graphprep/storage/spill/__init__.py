"""Arrays that a run keeps: in memory while they fit, in spill files beyond."""
