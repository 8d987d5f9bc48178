"""Input that lies in memory (tables, matrices, graphs of other libraries), written where ``read`` finds it as files.

In: objects of pandas, pyarrow, SciPy, NetworkX, PyG. Out: files in the scratch folder and the graph config that reads them.
Nothing here knows decoders or stores.
"""
