#!/bin/sh
# Converts sample graphs in every input format into out/, validates and describes them: `make demo`.
set -eu
cd "$(dirname "$0")/.."
PATH="$PWD/.venv/bin:$PATH"
export PATH
rm -rf out
mkdir out

show() {
    printf '\n$ %s\n' "$*"
    "$@"
}

convert() {
    name=$1
    shift
    show graphprep convert "$@" "out/$name"
    show graphprep validate "out/$name"
}

# What most of the runs below need, on all cores; each would compile what it lacks.
show graphprep kernels build --for convert-edges --for convert-edgelist --for convert-json --for convert-tsv \
    --for convert-chunked --for validate
convert karate sample_data/karate/karate.csv --weight-col weight --layout both
convert karate-edgelist sample_data/karate/karate.edgelist --partitions 2 --partition-by random
convert shop-json sample_data/shop/shop_temporal.jsonl --neighbor-order time
convert shop-tsv sample_data/shop/shop.tsv
convert shop-chunked sample_data/shop/chunked --partitions 2
convert parquet sample_data/edges/columns.parquet --src-col from --dst-col to --weight-col score
show graphprep info out/shop-json
printf '\n%s\n' "The stores are in out/."
