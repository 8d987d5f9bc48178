"""Reading: paths and URLs, streams, ranges, blocks of whole records, arrays of a store."""
