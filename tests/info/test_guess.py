"""The graph that the tables of a folder hold, guessed; and that the printed config converts."""

import gzip
import json

import pytest

import graphprep
from graphprep.cli.main import run
from graphprep.decoders.configs.graph_file import graph_to_json, load_graph
from graphprep.decoders.registry import TablesError, sniff
from graphprep.info.guess import guess_graph
from graphprep.storage.read.arrays import StoreReader
from graphprep.storage.read.urls import Storage


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
        "": [
            "Guessed from names and values: correct what is wrong.",
            "items.csv: its first line (item, colour) is read as a header: a guess, header: no makes a row of it",
        ],
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


@pytest.mark.parametrize("inside", ["", "people.csv"])
def test_nodes_without_edges(tmp_path, inside):
    (tmp_path / "people.csv").write_text("id,age\n1,30\n2,40\n")
    guessed = graphprep.info(tmp_path / inside)
    assert [(one.type, one.id_col) for one in guessed.config.nodes] == [("people", "id")]


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
    monkeypatch.setattr("graphprep.decoders.tables.samples._SAMPLE_BYTES", 1000)
    write(
        tmp_path,
        user_csv="id,name\n" + "".join(f"{i},n{i}\n" for i in range(1000)),
        likes_csv="src,dst\n" + "".join(f"{i * 37 % 1000},{i * 91 % 1000}\n" for i in range(1000)),
    )
    value, found = guess(tmp_path)
    assert [edge["type"] for edge in value["edges"]] == ["user:likes:user"]
    assert found.comments["nodes[0]"][0].endswith("all values differ (134 rows looked at).")
    assert found.comments["edges[0]"][1] == (
        "column 'src': 16 of 129 values in the first 129 rows are among the first 134 IDs of user."
    )


def test_an_end_without_a_table_is_called_like_its_column(tmp_path):
    write(tmp_path, person_csv="name,age\nAda,3\nBo,4\n", member_csv="person,club_id,fee\nAda,7,1\nAda,8,2\n")
    value, _ = guess(tmp_path)
    assert [edge["type"] for edge in value["edges"]] == ["person:member:club"]
    assert [node["type"] for node in value["nodes"]] == ["person"]


RATINGS = {
    "users_csv": "user_id,age\n" + "".join(f"{i},{20 + i % 50}\n" for i in range(989)),
    "movies_csv": "movieId,year\n" + "".join(f"{i},{1950 + i % 60}\n" for i in range(100)),
}


def rating_lines(last):
    rows = [f"{i % 988},{i * 7 % 100},{i % 5}\n" for i in range(4999)]
    return "user_id,movieId,stars\n" + "".join([*rows[:3000], f"{last},3,1\n", *rows[3000:]])


@pytest.mark.parametrize("last", ["7001", "unknown"])
def test_a_dangling_key_stays_a_foreign_key_and_stops_convert(tmp_path, capsys, last):
    write(tmp_path, **{f"in__{name}": text for name, text in RATINGS.items()}, in__ratings_csv=rating_lines(last))
    value, found = guess(tmp_path / "in")
    assert [edge["type"] for edge in value["edges"]] == ["users:ratings:movies"]
    assert found.comments["edges[0]"][1:] == [
        f"column 'user_id' is called so, and 988 of 989 values are IDs of users; 1 is not ('{last}').",
        "column 'movieId': all 100 values are IDs of movies, and it is called so.",
        "convert stops at the first value that is not, unless --on-missing-node says drop or create.",
    ]
    config, store = tmp_path / "graph.yaml", tmp_path / "store"
    config.write_text(found.yaml())
    assert run(["convert", str(config), str(store)]) == 1
    assert (
        f"ratings.csv:3002:1: the edge's source {last!r} is not a node of type 'users'\n"
        "  fix: add its record, or use --on-missing-node create or drop"
    ).replace("'7001'", "7001") in capsys.readouterr().err
    assert not store.exists()
    for choice, counts in (("drop", (100, 989, 4999)), ("create", (100, 990, 5000))):
        assert run(["convert", str(config), str(store), "--overwrite", "--on-missing-node", choice]) == 0
        metadata = StoreReader(Storage(), str(store)).metadata
        assert (*metadata.num_nodes_per_type, *metadata.num_edges_per_type) == counts


@pytest.mark.parametrize(
    ("name", "known", "types"),
    [("user_id", 2, ["users:likes:items"]), ("user_id", 1, ["user:likes:items"]), ("who", 19, ["users:likes:items"]),
     ("who", 18, ["who:likes:items"])],
)  # fmt: skip
def test_how_many_values_must_be_ids_of_a_table(tmp_path, name, known, types):
    count = 3 if name == "user_id" else 20  # half of the values where the name says so, 19 of 20 where they alone do
    write(
        tmp_path,
        users_csv="id,age\n" + "".join(f"u{i},{i}\n" for i in range(known)) + "z1,5\nz2,6\n",
        items_csv="id,size\n" + "".join(f"a{i},{i}\n" for i in range(3)),
        likes_csv=f"{name},item_id\n" + "".join(f"u{i},a{i % 3}\n" for i in range(count)) * 2,
    )
    value, found = guess(tmp_path)
    assert [edge["type"] for edge in value["edges"]] == types
    if types[0].startswith(("user:", "who:")):
        assert found.comments["edges[0]"][1] == (
            f"column {name!r}: no table has these IDs (users has {known} of {count}), they make a type of their own."
        )


def test_a_foreign_key_of_nodes_may_dangle_too(tmp_path):
    write(
        tmp_path,
        users_csv="id,city\n1,r1\n" + "".join(f"{i},c{i % 40}\n" for i in range(2, 99)) + "99,r2\n",
        cities_csv="id,size\n" + "".join(f"c{i},{i}\n" for i in range(40)),
    )
    value, found = guess(tmp_path)
    assert [edge["type"] for edge in value["edges"]] == ["users:city:cities"]
    assert found.comments["edges[0]"] == [
        "column 'city' is called so, and 40 of 42 values are IDs of cities; 2 are not (the first is 'r1'): an edge for each row "
        "of users.csv.",
        "convert stops at the first value that is not, unless --on-missing-node says drop or create.",
    ]


def test_a_key_with_a_value_twice_or_none_stays_a_key(tmp_path, capsys):
    for fault, words in (("7,3\n", "'7' 2 times"), (",3\n", "an empty cell")):
        rows = "".join(f"{i},{i % 9}\n" for i in range(99))
        write(tmp_path, **{"in__users_csv": f"user_id,age\n{rows}{fault}", "in__likes_csv": "src,dst\n1,2\n3,4\n"})
        value, found = guess(tmp_path / "in")
        assert value["nodes"][0]["id_col"] == "user_id"
        assert found.comments["nodes[0]"] == [
            "users.csv: nodes; column 'user_id' is called like an ID, and 99 of 100 values differ; there is "
            f"{words}, at which convert stops (100 rows)."
        ]
        (tmp_path / "graph.yaml").write_text(found.yaml())
        assert run(["convert", str(tmp_path / "graph.yaml"), str(tmp_path / "store")]) == 1


def test_of_a_long_table_the_same_rows_are_looked_at_and_said(tmp_path, monkeypatch):
    monkeypatch.setattr("graphprep.decoders.tables.samples._SAMPLE_BYTES", 4000)
    write(tmp_path, users_csv="id,x\n1,5\n2,6\n3,6\n", likes_csv="user_id,to\n" + "1,a\n2,b\n" * 999 + "8,c\n")
    _, found = guess(tmp_path)
    assert found.comments["edges[0]"][1] == (
        "column 'user_id': all 2 values in the first 997 rows are IDs of users, and it is called so."
    )


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
        "# Guessed from names and values: correct what is wrong.\n# items.csv: its first line (item, colour) is read as a header: a guess, header: no makes a row of it\nid_type: auto\n\nnodes:\n  # cities.csv: nodes;"
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
    text = capsys.readouterr().out
    found = json.loads(text)
    assert [node["type"] for node in found["nodes"]] == ["cities", "items", "users"]
    assert run(["info", str(tmp_path)]) == 0
    said = [line.removeprefix("# ") for line in map(str.strip, capsys.readouterr().out.splitlines()) if line.startswith("#")]
    assert sorted(line for lines in found["comments"].values() for line in lines) == sorted(said)
    (tmp_path / "graph.yaml").write_text(text)
    assert run(["convert", str(tmp_path / "graph.yaml"), str(tmp_path / "store")]) == 0


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


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("ann,ulm\nbob,bonn\n", "t.csv: its first line (ann, ulm) is read as a header: a guess, header: no makes a row of it"),
        (
            "name,year\nbob,1990\n",
            "t.csv: its first line (name, year) is read as a header: a guess, header: no makes a row of it",
        ),
        ("Node,2019\n7,8\n", "t.csv: its first line (Node, 2019) is read as a row: a guess, header: yes makes a header of it"),
        ("id,name\nann,bob\n", None),
        ("user_id,name\nann,bob\n", None),
    ],
)
def test_a_guessed_header_is_said(tmp_path, text, note):
    (tmp_path / "t.csv").write_text(text)
    (tmp_path / "u.csv").write_text("id,x\n1,2\n2,3\n")
    with Storage() as storage:
        found = guess_graph(storage, str(tmp_path))
    assert found is not None
    said = [line for line in found.comments[""] if "first line" in line]
    assert said == ([] if note is None else [note])
    assert found.yaml().splitlines()[0].startswith("# Guessed")


def test_a_first_line_whose_words_come_again_is_a_row(tmp_path):
    (tmp_path / "t.csv").write_text("alice,bob\nbob,carol\n")
    with Storage() as storage:
        assert guess_graph(storage, str(tmp_path / "t.csv")) is None
