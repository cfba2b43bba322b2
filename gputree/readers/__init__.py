"""Tables from files, for the command line: cells, CSV, Parquet, what to learn, what may be wrong."""
