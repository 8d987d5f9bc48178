"""How exporters see a store: edges in the wanted order, columns with the wanted dtypes, the IDs that trainers see."""
