"""What convert says of graphs that are sound and yet may be wrong: types without edges, two kinds of IDs read as one."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import graphprep
from graphprep.cli.main import run
from graphprep.decoders.cells.columns import name_two_kinds

RATINGS = "userId,movieId,rating\n" + "".join(f"{1 + i % 9},{1 + i * 7 % 30},{i % 5}\n" for i in range(200))
TWO_KINDS = (
    "columns 'userId' (1 to 9) and 'movieId' (1 to 30) were read as IDs of one node type: what stands in both is one node; "
    "if they are two kinds of things, name two types, with --relation SRC:REL:DST or --edges SRC:REL:DST=FILE; "
    "if one holds no IDs, name those that do, with --src-col and --dst-col, or give a table of nodes with --nodes"
)


@pytest.mark.parametrize("flags", [[], ["--threads", "1"], ["--id-type", "int"], ["--src-col", "userId"]])
def test_two_columns_read_as_one_id_space(tmp_path, capsys, flags):
    (tmp_path / "ratings.csv").write_text(RATINGS)
    command = ["convert", str(tmp_path / "ratings.csv"), str(tmp_path / "store"), "--overwrite", *flags]
    assert run([*command, "--json"]) == 0
    assert TWO_KINDS in json.loads(capsys.readouterr().out)["notes"]
    assert run(command) == 0
    assert f"  note: {TWO_KINDS}" in capsys.readouterr().out.replace("\n      ", " ")  # lines break at 80 columns
    assert run([*command, "--relation", "user:rates:movie", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found["num_nodes"]) == {"user", "movie"}
    assert not any(note.startswith("columns") for note in found["notes"])
    in_blocks = graphprep.convert(tmp_path / "ratings.csv", tmp_path / "small", overwrite=True, block_bytes=64)
    assert [note.split(";")[0] for note in in_blocks.notes if "columns" in note] == [TWO_KINDS.partition(";")[0]]


def test_two_columns_of_tables_parquet_and_names(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet as pq

    (tmp_path / "a.csv").write_text(RATINGS)
    (tmp_path / "names.csv").write_text("user,movie\nann,up\nbob,heat\n")
    (tmp_path / "same.csv").write_text("user,movie\n1,2\n2,1\n")
    users, movies = ([int(line.split(",")[i]) for line in RATINGS.splitlines()[1:]] for i in (0, 1))
    pq.write_table(pa.table({"userId": users, "movieId": movies}), tmp_path / "a.parquet")
    for number, (inputs, options, note) in enumerate(
        [
            (tmp_path / "a.parquet", {}, TWO_KINDS.partition(";")[0]),
            (
                tmp_path / "names.csv",
                {"decoder_options": {"id_type": "string", "header": "yes"}},
                "columns 'user' and 'movie' ",
            ),
            (tmp_path / "same.csv", {}, None),
        ]
    ):
        notes = [note for note in graphprep.convert(inputs, tmp_path / str(number), **options).notes if "columns" in note]
        assert [text[: len(note or "")] for text in notes] == ([note] if note else [])


def test_tables_whose_ends_are_one_type(tmp_path, capsys):
    (tmp_path / "a.csv").write_text(RATINGS)
    (tmp_path / "knows.csv").write_text("Person1Id,Person2Id\n1,2\n2,7\n")
    knows = ["--edges", f"person:knows:person={tmp_path / 'knows.csv'}"]
    assert run(["convert", str(tmp_path / "t"), "--edges", f"thing:rates:thing={tmp_path / 'a.csv'}", *knows, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["notes"] == [TWO_KINDS]


@pytest.mark.parametrize(
    ("src", "dst"),
    [("FromNodeId", "ToNodeId"), ("src", "dst"), ("id1", "id2"), ("Person1Id", "Person2Id"), ("u", "v"), ("citing", "cited"),
     ("follower_id", "followee_id"), ("source_user", "target_user"), (":START_ID", ":END_ID"), ("node", "node"),
     ("origin", "destination"), ("orig_airport", "dest_airport"), ("sender", "receiver"), ("sender_id", "receiver_id")],
)  # fmt: skip
def test_names_of_one_kind(src, dst):
    assert not name_two_kinds(src, dst)


@pytest.mark.parametrize(
    ("src", "dst"), [("userId", "movieId"), ("user", "item"), ("customer_id", "product_id"), ("id", "friend")]
)
def test_names_of_two_kinds(src, dst):
    assert name_two_kinds(src, dst)
    assert name_two_kinds(dst, src)


@given(st.text(max_size=9), st.integers(0, 9), st.integers(0, 9))
@example("Ǆa", 1, 2)
def test_names_that_differ_by_a_number_are_of_one_kind(name, one, other):
    assert not name_two_kinds(f"{name}{one}", f"{name}{other}")


def test_node_types_with_columns_and_no_edge(tmp_path, capsys):
    (tmp_path / "users.csv").write_text("id,age,city\n1,20,4\n2,21,5\n")
    (tmp_path / "items.csv").write_text("id,size\n7,1\n")
    (tmp_path / "bare.csv").write_text("id\n7\n")
    (tmp_path / "buys.csv").write_text("user_id,item\n1,7\n2,7\n")
    tables = [f"--nodes=user={tmp_path / 'users.csv'}", f"--nodes=bare={tmp_path / 'bare.csv'}"]
    tables += [f"--nodes=item={tmp_path / 'items.csv'}", f"--edges=users:buys:item={tmp_path / 'buys.csv'}"]
    assert run(["convert", str(tmp_path / "store"), *tables, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["notes"] == ["node type 'user' has 2 columns, but no edge begins or ends in it"]
    assert run(["convert", str(tmp_path / "store"), "--overwrite", *tables, "--drop-column", "user:age"]) == 0
    assert "  note: node type 'user' has column 'city', but no edge begins or ends in it\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("header", "flags", "is_told"),
    [
        ("edge_id,user_id,item_id", [], True),
        ("rating_id,user,item", [], True),
        ("timestamp,userId,itemId", [], True),
        ("edge_id,user_id,item_id", ["--src-col", "user_id", "--dst-col", "item_id"], False),
        ("edge_id,src,dst", [], False),
        ("id,age,income", ["--format", "edges"], False),
        ("rating_id,user_id,item_id", [], True),
        ("id,start,end", [], True),
        ("user_id,item_id,session_id", [], False),
        ("userId,movieId,from,to", [], False),
        ("user,item,rating", [], False),
        ("from,to,edge_id", [], False),
        ("a,b,c", [], False),
    ],
)
def test_ends_that_stand_behind_another_column(tmp_path, capsys, header, flags, is_told):
    path = tmp_path / "a.csv"
    path.write_text(
        f"{header}\n" + "".join(",".join(str(i + j) for j in range(header.count(",") + 1)) + "\n" for i in range(3))
    )
    assert run(["convert", str(path), str(tmp_path / "store"), *flags]) == 0
    first, second = header.split(",")[:2]
    told = f"{path}: columns {first!r} and {second!r} are read as source and destination; --src-col and --dst-col name others"
    assert (told in capsys.readouterr().err) == is_told
