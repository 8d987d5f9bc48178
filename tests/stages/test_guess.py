"""The graph that the tables of a folder hold, guessed; and that the printed config converts."""

import gzip
import json

import pytest

from graphprep.cli.main import run
from graphprep.decoders.graph_file import graph_to_json, load_graph
from graphprep.decoders.sniff import TablesError, sniff
from graphprep.stages.guess import guess_graph
from graphprep.storage.arrays import StoreReader
from graphprep.storage.urls import Storage


def write(folder, **tables):
    for name, text in tables.items():
        path = folder / name.replace("__", "/").replace("_csv", ".csv").replace("_jsonl", ".jsonl")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def guess(folder):
    with Storage() as storage:
        found = guess_graph(storage, str(folder))
    assert found is not None
    value = graph_to_json(found.config)
    text = json.dumps(value).replace(f"{folder if folder.is_dir() else folder.parent}/", "")
    return json.loads(text), found


SHOP = {
    "users_csv": "user_id,name,city\n1,Ann,10\n2,Bob,10\n3,Cy,11\n",
    "cities_csv": "id,name\n10,Rome\n11,Oslo\n",
    "buys_csv": "user_id,item,price\n1,a1,2.5\n3,a2,1.0\n1,a2,1.0\n",
    "items_csv": "item,colour\na1,red\na2,blue\na3,red\n",
}


def test_keys_foreign_keys_and_edges(tmp_path):
    write(tmp_path, **SHOP)
    value, found = guess(tmp_path)
    assert value == {
        "id_type": "auto",
        "nodes": [
            {"type": "cities", "files": "cities.csv", "id_col": "id", "header": "yes"},
            {"type": "items", "files": "items.csv", "id_col": "item", "header": "yes"},
            {"type": "users", "files": "users.csv", "id_col": "user_id", "header": "yes", "drop": ["city"]},
        ],
        "edges": [
            {
                "type": "users:buys:items",
                "files": "buys.csv",
                "src_col": "user_id",
                "dst_col": "item",
                "header": "yes",
            },
            {
                "type": "users:city:cities",
                "files": "users.csv",
                "src_col": "user_id",
                "dst_col": "city",
                "header": "yes",
                "keep": [],
            },
        ],
    }
    assert found.comments == {
        "": ["Guessed from names and values: correct what is wrong."],
        "nodes[0]": ["cities.csv: nodes; column 'id' is called like an ID, and all values differ (2 rows)."],
        "nodes[1]": ["items.csv: nodes; column 'item' is called like an ID, and all values differ (3 rows)."],
        "nodes[2]": ["users.csv: nodes; column 'user_id' is called like an ID, and all values differ (3 rows)."],
        "edges[0]": [
            "buys.csv: two columns of IDs and no key of its own: edges.",
            "column 'user_id': all 2 values are IDs of users, and it is called so.",
            "column 'item': all 2 values are IDs of items, and it is called so.",
        ],
        "edges[1]": ["column 'city': all 2 values are IDs of cities, and it is called so: an edge for each row of users.csv."],
    }


def test_numbers_that_happen_to_be_ids_join_nothing(tmp_path):
    write(tmp_path, user_csv="id,age\n1,2\n2,3\n3,3\n", item_csv="id,size,name\n1,3,x\n2,3,y\n3,1,z\n")
    value, _ = guess(tmp_path)
    assert [node["type"] for node in value["nodes"]] == ["item", "user"]
    assert "edges" not in value


def test_tables_without_headers(tmp_path):
    write(
        tmp_path,
        user_csv="Adam,30\nKim,40\n",
        city_csv="Rome,5\nOslo,6\n",
        lives_csv="Adam,Rome\nKim,Oslo\n",
        likes_csv="Adam,Kim,1\nAdam,Adam,2\n",
    )
    value, _ = guess(tmp_path)
    assert [(node["type"], node["id_col"], node["header"]) for node in value["nodes"]] == [("city", 0, "no"), ("user", 0, "no")]
    assert [(edge["type"], edge["src_col"], edge["dst_col"]) for edge in value["edges"]] == [
        ("user:likes:user", 0, 1),
        ("user:lives:city", 0, 1),
    ]


def test_edges_alone_make_their_nodes(tmp_path):
    write(tmp_path, follows_csv="src,dst\n5,6\n6,5\n", blocks_csv="source,target,why\n5,6,x\n")
    value, found = guess(tmp_path)
    assert [edge["type"] for edge in value["edges"]] == ["node:blocks:node", "node:follows:node"]
    assert found.comments["edges[1]"][1] == "column 'src': no table has these IDs, they make a type of their own."


def test_of_large_tables_the_beginning_is_looked_at(tmp_path, monkeypatch):
    monkeypatch.setattr("graphprep.decoders.table_samples._SAMPLE_BYTES", 1000)
    write(
        tmp_path,
        user_csv="id,name\n" + "".join(f"{i},n{i}\n" for i in range(1000)),
        likes_csv="src,dst\n" + "".join(f"{i * 37 % 1000},{i * 91 % 1000}\n" for i in range(1000)),
    )
    value, found = guess(tmp_path)
    assert [edge["type"] for edge in value["edges"]] == ["user:likes:user"]
    assert found.comments["nodes[0]"][0].endswith("all values differ (134 rows looked at).")
    assert found.comments["edges[0]"][1] == "column 'src': 16 of 129 values are among the first 134 IDs of user."


def test_an_end_without_a_table_is_called_like_its_column(tmp_path):
    write(tmp_path, person_csv="name,age\nAda,3\nBo,4\n", member_csv="person,club_id,fee\nAda,7,1\nAda,8,2\n")
    value, _ = guess(tmp_path)
    assert [edge["type"] for edge in value["edges"]] == ["person:member:club"]
    assert [node["type"] for node in value["nodes"]] == ["person"]


def test_part_files_copies_and_strangers(tmp_path):
    write(
        tmp_path,
        people1_csv="id,name\n1,a\n2,b\n",
        people2_csv="id,name\n3,c\n",
        less_csv="id\n1\n2\n",
        knows__part__0_csv="src,dst\n1,3\n",
        knows__part__1_csv="src,dst\n2,3\n",
        notes_md="# x",
        ragged_csv="a,b\n1\n",
    )
    (tmp_path / "knows" / "part").rename(tmp_path / "flat")
    (tmp_path / "knows").rmdir()
    (tmp_path / "flat").rename(tmp_path / "knows")
    (tmp_path / "people1.csv.gz").write_bytes(gzip.compress((tmp_path / "people1.csv").read_bytes()))
    (tmp_path / "_SUCCESS").touch()
    value, found = guess(tmp_path)
    assert value["nodes"] == [{"type": "people", "files": ["people1.csv", "people2.csv"], "id_col": "id", "header": "yes"}]
    assert [(edge["type"], edge["files"]) for edge in value["edges"]] == [("people:knows:people", "knows/")]
    assert found.comments[""][1:] == [
        "left out: notes_md (not called like a table)",
        "left out: ragged.csv (record 2 has 1 columns, the first has 2)",
        "left out: people1.csv.gz (the same rows as people1.csv)",
        "left out: less.csv (its IDs are all in people1.csv, people2.csv, and so are its columns)",
    ]


def test_parquet_arrow_and_json_lines(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import feather
    from pyarrow import parquet as pq

    pq.write_table(
        pa.table({"id": [7, 8], "when": pa.array([1, 2], pa.timestamp("ms")), "x": [[1.0], [2.0]]}), tmp_path / "user.parquet"
    )
    feather.write_feather(pa.table({"key": ["a", "b"], "PartOfTag": ["a", None]}), tmp_path / "tag.arrow")
    write(tmp_path, tagged_jsonl='{"user": 7, "tag": "a"}\n{"user": 7, "tag": "b", "at": 3}\n')
    value, _ = guess(tmp_path)
    assert [(node["type"], node["id_col"]) for node in value["nodes"]] == [("tag", "key"), ("user", "id")]
    assert [edge["type"] for edge in value["edges"]] == ["tag:PartOf:tag", "user:tagged:tag"]


@pytest.mark.parametrize(
    "tables", [{"a1_csv": "1,2\n", "a2_csv": "2,3\n"}, {"a_csv": "src,dst\n1,2\n", "b_csv": "src,dst\n2,3\n"}]
)
def test_the_parts_of_one_edge_list_are_no_graph_of_tables(tmp_path, tables):
    write(tmp_path, **tables)
    with Storage() as storage:
        assert sniff(storage, [str(tmp_path)]).decoder == "edges"


def test_a_single_table_with_names_and_a_key(tmp_path, capsys):
    write(tmp_path, user_csv="id,name\n7,Ann\n8,Bob\n", bare_csv="Ann,3\nBob,4\n", none_csv="name,size\nAnn,3\nAnn,4\n")
    value, _ = guess(tmp_path / "user.csv")
    assert value == {"nodes": [{"type": "user", "files": "user.csv", "id_col": "id", "header": "yes"}]}
    assert run(["info", str(tmp_path / "user.csv")]) == 0
    for name in ("bare.csv", "none.csv"):
        assert run(["info", str(tmp_path / name)]) == 2
        assert "a table --nodes or --edges" in capsys.readouterr().err


def test_a_folder_of_one_table(tmp_path, capsys):
    one, parts, none = (tmp_path / name for name in ("one", "parts", "none"))
    for folder in (one, parts, none):
        folder.mkdir()
    write(one, user_csv="id,name\n7,Ann\n8,Bob\n")
    write(none, none_csv="name,size\nAnn,3\nAnn,4\n")
    for number, rows in enumerate(("7,Ann\n8,Bob\n", "9,Cy\n")):
        (parts / f"part-0000{number}.csv").write_text(f"id,name\n{rows}")
    (parts / "_SUCCESS").touch()
    for folder, files in ((one, "user.csv"), (parts, ["part-00000.csv", "part-00001.csv"])):
        (table,) = guess(folder)[0]["nodes"]
        assert (table["files"], table["id_col"]) == (files, "id")
        assert run(["info", str(folder)]) == 0
        assert "id_col: id" in capsys.readouterr().out
    assert run(["info", str(none)]) == 2
    assert "none.csv: cannot tell the format" in capsys.readouterr().err


def test_convert_says_what_to_do_with_a_folder_of_tables(tmp_path):
    write(tmp_path, **SHOP)
    with Storage() as storage, pytest.raises(TablesError) as caught:
        sniff(storage, [str(tmp_path)])
    assert str(caught.value) == (
        f"{tmp_path}: this folder holds several tables, and does not say which are nodes and which are edges\n"
        f"  fix: run graphprep info {tmp_path} > graph.yaml, look at what it guessed, and convert graph.yaml"
    )


def test_what_info_prints_can_be_converted(tmp_path, capsys):
    write(tmp_path, **{f"in__{name}": text for name, text in SHOP.items()})
    assert run(["info", str(tmp_path / "in")]) == 0
    text = capsys.readouterr().out
    assert text.startswith(
        "# Guessed from names and values: correct what is wrong.\nid_type: auto\n\nnodes:\n  # cities.csv: nodes;"
    )
    (tmp_path / "graph.yaml").write_text(text)
    assert run(["convert", str(tmp_path / "graph.yaml"), str(tmp_path / "store")]) == 0
    with Storage() as storage:
        metadata = StoreReader(storage, str(tmp_path / "store")).metadata
    assert dict(zip(metadata.node_types, metadata.num_nodes_per_type, strict=True)) == {"cities": 2, "items": 3, "users": 3}
    assert metadata.num_edges_per_type == (3, 3)


def test_escapes_and_comments_of_text(tmp_path):
    write(
        tmp_path,
        people_csv="id,name\n1,Ann\n2,Bob\n",
        people2_csv='id,name\n3,"say \\"hi\\", Cy"\n4,Di\n',
        knows_csv="# src to dst\n#\n1\t2\n4\t3\n3\t1\n",
    )
    value, found = guess(tmp_path)
    assert value["nodes"] == [
        {"type": "people", "files": "people.csv", "id_col": "id", "header": "yes"},
        {"type": "people", "files": "people2.csv", "id_col": "id", "header": "yes", "escape": "\\"},
    ]
    ends = {"src_col": 0, "dst_col": 1}
    assert value["edges"] == [{"type": "people:knows:people", "files": "knows.csv", **ends, "header": "no", "comment": "#"}]
    (tmp_path / "graph.yaml").write_text(found.yaml())
    assert run(["convert", str(tmp_path / "graph.yaml"), str(tmp_path / "store")]) == 0
    metadata = StoreReader(Storage(), str(tmp_path / "store")).metadata
    assert (metadata.num_nodes_per_type, metadata.num_edges_per_type) == ((4,), (3,))


def test_info_prints_json_on_demand(tmp_path, capsys):
    write(tmp_path, **SHOP)
    assert run(["info", str(tmp_path), "--json"]) == 0
    assert [node["type"] for node in json.loads(capsys.readouterr().out)["nodes"]] == ["cities", "items", "users"]


@pytest.mark.parametrize(
    ("name", "types"),
    [
        ("demo_db_csv", {"city": 3, "user": 4, "user:follows:user": 4, "user:lives-in:city": 4}),
        ("bitcoin_otc", {"nodes": 5881, "nodes:edges:nodes": 35592}),
        (
            "snb_person_parquet",
            {
                "city": 1343, "person": 50, "tag": 16080, "person:Location:city": 50, "person:hasinterest:tag": 1256,
                "person:knows:person": 83,
            },
        ),
        (
            "tinysnb_csv",
            {
                "vMovies": 3, "vOrganisation": 3, "vPerson": 8, "vPerson:eKnows:vPerson": 14,
                "vPerson:eMarries:vPerson": 3, "vPerson:eMeets:vPerson": 7, "vPerson:eStudyAt:vOrganisation": 3,
                "vPerson:eWorkAt:vOrganisation": 3,
            },
        ),
    ],
)  # fmt: skip
def test_real_tables(real_samples, tmp_path, capsys, name, types):
    assert run(["info", str(real_samples / name)]) == 0
    (tmp_path / "graph.yaml").write_text(capsys.readouterr().out)
    with Storage() as storage:
        load_graph(storage, str(tmp_path / "graph.yaml"))
    assert run(["convert", str(tmp_path / "graph.yaml"), str(tmp_path / "store"), "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["num_nodes"] | summary["num_edges"] == types
