"""The edge engine's kernels on a CUDA device: see ``graphprep.kernels.edges``. Imported when one is asked for.

``probe`` finds a device, ``kernels`` is its ``Kernels``, over arrays of the host; ``resident`` works on arrays that lie on the
device. Both are made of the device kernels in ``scan``, ``radix``, ``rows`` and ``elements``.
"""
