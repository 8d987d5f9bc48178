"""``plan``: what a conversion will be like, from samples, headers and footers of its input.

In: inputs and the options of ``convert``. Out: ``PlanReport``. Nothing is written. It knows ``convert``: which decoder reads
what, and what its stages declare of memory; it must not know stores, nor run a stage.
"""
