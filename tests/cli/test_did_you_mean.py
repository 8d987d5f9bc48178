"""A wrong name of each kind of choice is answered with the right one that is like it."""

import pytest

import graphprep
from graphprep.cli.main import run
from graphprep.model.errors import one_of


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shop")
    (folder / "users.csv").write_text("id,age,part\nann,31,train\nbob,42,test\n")
    (folder / "buys.csv").write_text("user,item,price\nann,1,2.5\nbob,2,1.5\n")
    (folder / "seeds.txt").write_text("ann\n")
    tables = {"nodes": {"user": str(folder / "users.csv")}, "edges": {"user:buys:item": str(folder / "buys.csv")}}
    graphprep.convert([], folder / "store", decoder_options={"id_type": "string"}, **tables)
    return folder


def test_a_long_list_is_cut_and_begins_with_the_nearest_names():
    names = [f"column_{at}x" for at in range(30)] + ["price"]
    fix = one_of(names, found="PRICES")
    assert fix.startswith("did you mean 'price'? use one of price, column_0x, column_1x, ")
    assert fix.endswith("column_10x, ... and 19 more")
    assert one_of(names[:20]).endswith(", column_19x")


@pytest.mark.parametrize("found", ["buy", "user:buy:item", "USER:BUYS:ITEM"])
def test_an_edge_type_is_found_by_its_relation_and_in_capitals(found):
    assert one_of(["user", "user:buys:item"], found=found).startswith("did you mean 'user:buys:item'? use one of user, ")


CONVERT = "convert F/buys.csv OUT --format edges"
TABLES = "convert OUT --nodes user=F/users.csv --edges user:buys:item=F/buys.csv --id-type string"
CHOICES = {
    "format": ("convert F/buys.csv OUT --format edgs", "edges"),
    "choice of convert": (f"{CONVERT} --layout cscc", "csc"),
    "choice in capitals": (f"{CONVERT} --layout CSR", "csr"),
    "partition method": (f"{CONVERT} --partition-by hsh", "hash"),
    "partition method of a store": ("partition F/store OUT --by hsh", "hash"),
    "table": (f"{TABLES} --id-col usr=id", "user"),
    "column of a table": (f"{TABLES} --drop-column user:agee", "age"),
    "choice of a table": (f"{TABLES.removesuffix('string')}user=strin", "string"),
    "node type of a role": (f"{TABLES} --label usr:age", "user"),
    "column of a role": (f"{TABLES} --label user:agee", "age"),
    "edge type of a role": (f"{TABLES} --label user:buy:item:price", "user:buys:item"),
    "target": ("export F/store OUT --to pgy", "pyg"),
    "option of a target": ("export F/store OUT --to glt --option layot=COO", "layout"),
    "choice of a target": ("export F/store OUT --to glt --option layout=CSCC", "CSC"),
    "column of an export": ("export F/store OUT --to npy --drop-column agee", "age"),
    "column of scipy": ("export F/store OUT --to scipy --option weight=prize", "price"),
    "order": ("reorder F/store OUT --by degre", "degree"),
    "order with a file": ("reorder F/store OUT --by permutaton:f.npy", "permutation:FILE"),
    "split": ("split F/store OUT --by lable:age", "label[:COL]"),
    "type of a split": ("split F/store OUT --by random 0.8/0.1/0.1 --of buy", "user:buys:item"),
    "operation": ("transform F/store OUT to-simpel", "to-simple"),
    "choice of an operation": ("transform F/store OUT self-loops dropp", "drop"),
    "column of an operation": ("transform F/store OUT drop-columns prize", "price"),
    "choice of stats": ("stats F/store --triangles exac", "exact"),
    "ID space": ("ids F/store ann --from rawr --to homo", "raw"),
    "node type of IDs": ("ids F/store ann --from raw --to homo --type usr", "user"),
    "column of samples": ("sample F/store OUT --seeds user=F/seeds.txt --fanouts 2 --copy-column user:agee", "user:age"),
    "edge type of fan-outs": ("sample F/store OUT --seeds user=F/seeds.txt --fanouts user:buy:item=2", "user:buys:item"),
    "node type of seeds": ("sample F/store OUT --fanouts 2 --seeds usr=s.txt", "user"),
    "kind of graph": ("generate gird OUT", "grid"),
    "command": ("exprot F/store", "export"),
}


@pytest.mark.parametrize(("line", "near"), CHOICES.values(), ids=CHOICES)
def test_a_wrong_name_is_answered_with_the_nearest(files, tmp_path, capsys, line, near):
    words = [word.replace("F/", f"{files}/", 1).replace("OUT", str(tmp_path / "out")) for word in line.split()]
    assert run(words) in (1, 2)
    assert f"did you mean {near!r}?" in capsys.readouterr().err.replace("Did", "did")
