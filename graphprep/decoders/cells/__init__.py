"""What decoders share: fields of text and arrays of Arrow to chunks of columns, headers, and the words for what is wrong."""
