"""Files for neo4j-admin database import: their headers, which file has which header, and the tables they make."""

import gzip

import pytest

from graphprep.decoders.configs.neo4j import Neo4jTables
from graphprep.decoders.registry import sniff
from graphprep.model.errors import GraphprepError
from graphprep.model.graph_config import EdgeTable, GraphConfig, NodeTable, TableConfig
from graphprep.storage.read.urls import Storage

# The first example of the operations manual.
MOVIES = 'movieId:ID,title,year:int,:LABEL\ntt0133093,"The Matrix",1999,Movie\ntt0234215,"Reloaded",2003,Movie;Sequel\n'
ACTORS = "personId:ID,name,:LABEL\nkeanu,Keanu Reeves,Actor\n"
ROLES = ':START_ID,role,:END_ID,:TYPE\nkeanu,"Neo",tt0133093,ACTED_IN\n'


def write(folder, **files):
    for name, text in files.items():
        (folder / name.replace("__", "-").replace("_csv", ".csv")).write_text(text)


def read(folder, *urls, **options) -> GraphConfig:
    with Storage() as storage:
        return Neo4jTables(**options).read_config(storage, [str(url) for url in urls] or [str(folder)])


def message(folder, *urls) -> str:
    with pytest.raises(GraphprepError) as caught:
        read(folder, *urls)
    return str(caught.value).replace(f"{folder}/", "")


def test_a_folder_of_files_with_headers(tmp_path):
    write(tmp_path, movies_csv=MOVIES, actors_csv=ACTORS, roles_csv=ROLES)

    def table(name: str, **more) -> TableConfig:
        files = (str(tmp_path / name),)
        return TableConfig(files, "csv", ",", "yes", list_delimiter=";", place=f"{tmp_path / name}:1:1", **more)

    assert read(tmp_path) == GraphConfig(
        nodes=(
            NodeTable(
                None,
                table("actors.csv", columns=(("col_1", "binary"),), renamed=(("col_1", "name"),)),
                type_col="col_2",
                type_delimiter=";",
                id_col="col_0",
                space="global",
                declares=True,
            ),
            NodeTable(
                None,
                table(
                    "movies.csv",
                    columns=(("col_1", "binary"), ("col_2", "int32")),
                    renamed=(("col_1", "title"), ("col_2", "year")),
                ),
                type_col="col_3",
                type_delimiter=";",
                id_col="col_0",
                space="global",
                declares=True,
            ),
        ),
        edges=(
            EdgeTable(
                None,
                None,
                None,
                table("roles.csv", columns=(("col_1", "binary"),), renamed=(("col_1", "role"),)),
                relation_col="col_3",
                src_col="col_0",
                dst_col="col_2",
                src_space="global",
                dst_space="global",
            ),
        ),
        id_type="auto",
        place=f"{tmp_path / 'actors.csv'}:1:1",
    )


def test_header_files_belong_to_the_files_called_like_them(tmp_path):
    write(
        tmp_path,
        movies__header_csv="movieId:ID(Movie-ID),title,year:int\n",
        movies__part1_csv='tt1,"A",1999\n',
        movies__part2_csv='tt2,"B",2003\n',
        movies__old__header_csv="movieId:ID(Movie-ID)\n",
        movies__old1_csv="tt3\n",
        acted_in_header_csv=":START_ID(Actor-ID),:END_ID(Movie-ID)\n",
        acted_in_csv="k,tt1\n",
        actors_csv="id:ID(Actor-ID),name\nk,Keanu\n",
    )
    found = read(tmp_path)
    files = {node.type: [file.rpartition("/")[2] for file in node.table.files] for node in found.nodes}
    assert files == {
        "actors": ["actors.csv"],
        "movies": ["movies-part1.csv", "movies-part2.csv"],
        "movies-old": ["movies-old1.csv"],
    }
    movies = next(node for node in found.nodes if node.type == "movies")
    assert (movies.table.header, movies.table.names) == ("no", ("movieId", "title", "year"))
    (edge,) = found.edges
    assert (edge.src_type, edge.relation, edge.dst_type, edge.dst_space) == ("actors", "acted_in", None, "Movie-ID")


def test_labels_and_files_as_neo4j_admin_takes_them(tmp_path):
    write(
        tmp_path,
        h_csv=":ID,name:string[],:LABEL\n",
        p1_csv="1,a;b,X\n",
        p2_csv="2,c,Y\n",
        r_csv=":START_ID,:END_ID,w:double[]\n1,2,1;2\n",
    )
    found = read(tmp_path, f"Person:Actor={tmp_path}/h.csv,{tmp_path}/p1.csv,{tmp_path}/p2.csv", f"KNOWS={tmp_path}/r.csv")
    (node,), (edge,) = found.nodes, found.edges
    assert (node.type, node.type_col, node.space) == ("Person", None, "global")
    assert node.table.files == (f"{tmp_path}/p1.csv", f"{tmp_path}/p2.csv")
    assert (node.table.dropped, node.table.columns) == (("col_2",), (("col_1", "binary"),))
    assert (edge.src_type, edge.relation, edge.dst_type, edge.src_space) == ("Person", "KNOWS", "Person", None)
    assert edge.table.columns == (("col_2", "list<float64>"),)


def test_a_first_file_with_rows_lends_its_header_to_the_others(tmp_path):
    write(tmp_path, a_csv=":ID,x:long\n1,2\n", b_csv="3,4\n")
    found = read(tmp_path, f"T={tmp_path}/a.csv,{tmp_path}/b.csv")
    assert [(node.table.header, node.table.names, len(node.table.files)) for node in found.nodes] == [
        ("yes", None, 1),
        ("no", (":ID", "x"), 1),
    ]


def test_every_type_of_a_property(tmp_path):
    kinds = {
        "int": "int32", "long": "int64", "short": "int16", "byte": "int8", "float": "float32", "double": "float64",
        "boolean": "bool", "string": "binary", "char": "binary", "point{crs:WGS-84}": "binary", "date": "date",
        "time": "binary", "localtime": "binary", "duration": "binary", "datetime{timezone:Europe/Berlin}": "timestamp[us]",
        "localdatetime": "timestamp[us]", "int[]": "list<int32>", "boolean[]": "list<bool>", "string[]": "binary",
        "date[]": "binary", "Long": "int64",
    }  # fmt: skip
    write(tmp_path, a_csv=":ID," + ",".join(f"c:d{i}:{kind}" for i, kind in enumerate(kinds)) + ",x:IGNORE,:IGNORE\n1\n")
    (node,) = read(tmp_path).nodes
    assert [dtype for _, dtype in node.table.columns] == list(kinds.values())
    assert node.table.renamed[0] == ("col_1", "c:d0")
    assert node.table.dropped == (f"col_{len(kinds) + 1}", f"col_{len(kinds) + 2}")


def test_id_types_stand_in_options_of_the_header(tmp_path):
    write(
        tmp_path, a_csv="x:ID(A){id-type: long}\n1\n", b_csv=":ID(B){label:Person, id-type: string}\n1\n", c_csv=":ID(C)\n1\n"
    )
    assert [node.table.id_type for node in read(tmp_path).nodes] == ["int", "string", None]
    assert read(tmp_path, id_type="uint").id_type == "uint"


def test_compressed_files_and_other_delimiters(tmp_path):
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"id:ID\tn:int\n1\t2\n"))
    (node,) = read(tmp_path, delimiter="\\t").nodes
    assert (node.type, node.id_col, node.table.delimiter, node.table.renamed) == ("a", "col_0", "\t", (("col_1", "n"),))


@pytest.mark.parametrize(
    ("files", "text"),
    [
        (
            {"a_csv": ":ID,n:number\n1,2\n"},
            "a.csv:1:1: field 'n:number': no type named 'number'\n  fix: use one of int, long, short, byte, float, double, "
            "boolean, date, localdatetime, datetime, string, char, ... and 10 more",
        ),
        ({"a_csv": ":START_ID,x\n1,2\n"}, "a.csv:1:1: there is no field :END_ID\n  fix: add it to the header"),
        ({"a_csv": "a:ID,b:ID\n1,2\n"}, "a.csv:1:1: 2 fields are :ID\n  fix: join them in one column"),
        (
            {"a_csv": ":START_ID(X),:END_ID(X)\n1,2\n"},
            "a.csv:1:1: there is no node file with IDs of the ID space 'X'\n  fix: name the node files, too",
        ),
        ({"a_csv": ":ID{id-type:uuid}\n1\n"}, "a.csv:1:1: no id-type named 'uuid'\n  fix: use int, long or string"),
        (
            {"a_csv": ":ID\n1\n", "b_csv": "1,2\n"},
            "b.csv:1:1: the first line is no header with :ID or :START_ID, and no header file is called like this\n"
            "  fix: call the header file like it, with -header behind, or name both: header.csv,part.csv",
        ),
    ],
)
def test_faults(tmp_path, files, text):
    write(tmp_path, **files)
    assert message(tmp_path) == text


def test_sniff(tmp_path):
    write(tmp_path, actors_csv=ACTORS, zz_csv="1,2\n")
    with Storage() as storage:
        assert sniff(storage, [str(tmp_path)]).decoder == "neo4j"
        assert sniff(storage, [str(tmp_path / "actors.csv")]).flags == ("--format", "neo4j")
        assert sniff(storage, [str(tmp_path / "zz.csv")]).decoder == "edges"
