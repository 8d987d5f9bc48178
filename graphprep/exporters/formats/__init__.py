"""File formats that several targets write: those of torch, DGL and Arrow, and columns as text. They know no stores."""
