"""``graphprep sample``: neighbourhoods of seeds, drawn beforehand, mini-batch after mini-batch, as layered graphs (NodeFlow).

In: a store and seeds. Out: shards of ``FlowArrays`` and a manifest (docs/sample.md). Nothing here knows a trainer.
"""
