"""What an exporter needs of a store and the store lacks: derived layouts, orders and partitionings, in a private folder.

In: a store and a ``StoreNeed``. Out: a ``DerivedStore``, which shows derived and stored arrays as one store. Nothing
here knows a trainer.
"""
