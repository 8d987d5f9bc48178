"""On the path of a Python that has DGL, but not the torch for which GraphBolt is compiled: DGL loads without it."""

import sys
import types

graphbolt = types.ModuleType("dgl.graphbolt")
graphbolt.FusedCSCSamplingGraph = type("FusedCSCSamplingGraph", (), {})
sys.modules["dgl.graphbolt"] = graphbolt
