"""Where the edge engine computes: what a user asks for, the device that is found, and what happens when it fails.

In: ``--device`` or ``device=``, and how much there is to do. Out: kernels, which are handed in. Nothing of CUDA is imported
until a device is looked for.
"""
