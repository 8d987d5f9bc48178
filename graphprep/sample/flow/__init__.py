"""Samples in Python: the layered graphs of mini-batches as ``NodeFlow``, read from files or drawn from a loaded store.

In: ``FlowArrays``, from the shards of ``graphprep sample`` or from its kernels. Out: answers under the names of DGL's NodeFlow,
and the forms in which DGL and PyG take mini-batches. Torch and DGL are imported only when their forms are asked for.
"""
